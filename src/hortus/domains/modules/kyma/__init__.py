"""The controller of Kymas, in parts: decisions about modules, which are pure, and what is done about them."""
