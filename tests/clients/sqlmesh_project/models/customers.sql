MODEL (name shop.customers, kind VIEW);
SELECT customer, COUNT(*) AS orders, SUM(amount) AS amount FROM shop.all_orders GROUP BY customer
