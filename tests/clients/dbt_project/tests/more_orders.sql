select * from {{ ref('customers') }} where orders < 1
