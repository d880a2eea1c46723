CREATE TABLE orders (
  id TEXT NOT NULL,
  cents INTEGER NOT NULL,
  state TEXT NOT NULL,  -- open, then what came of the charge
  charge TEXT           -- the provider's id of the charge
);
