{% snapshot orders_history %}
{{ config(target_schema='shop', unique_key='id', strategy='check', check_cols=['amount'], file_format='delta') }}
select id, customer, amount + case when id = 1 then {{ var('build', 1) }} else 0 end as amount from {{ ref('orders') }}
{% endsnapshot %}
