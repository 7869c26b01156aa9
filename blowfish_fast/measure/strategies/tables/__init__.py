"""Contingency tables of wide domains: prices, plans, least squares, noise laws.

table_strategy    whole tables, each measured with noise of one scale
merged_tables     the same for a batch of tables whose cells were summed
table_plan        which tables to measure, and at which rates, from public sizes
residuals         least squares over noisy tables, and the noise that it leaves
model_distance    how far published tables lie from the true ones, measured with noise
"""
