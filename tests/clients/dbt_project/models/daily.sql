{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2024-01-01', partition_by=['day']) }}
select id, cast(day as timestamp) as at, day from {{ ref('orders') }}
