{{ config(materialized='table') }}
select id, customer, amount from {{ ref('orders') }}
