{{ config(materialized='table', partition_by=['day']) }}
select id, customer, cast(day as date) as day, cast(amount as decimal(10, 2)) as amount
from {{ ref('orders_1') }}
where {{ var('build', 1) }} >= 1
union all
select 3 + n as id, 'eve' as customer, date'2024-01-03' as day, cast(n as decimal(10, 2)) as amount
from (select explode(sequence(1, {{ var('build', 1) }})) as n)
