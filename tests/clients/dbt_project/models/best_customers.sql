{{ config(materialized='view') }}
with ranked as (select *, row_number() over (order by amount desc) as place from {{ ref('customers') }})
select customer, amount from ranked where place <= 2
