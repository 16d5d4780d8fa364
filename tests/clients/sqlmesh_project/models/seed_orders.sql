MODEL (name shop.seed_orders, kind SEED (path '../seeds/orders.csv'), columns (id INT, customer STRING, day DATE, amount DOUBLE));
