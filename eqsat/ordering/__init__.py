"""Ordering: finds an order of steps in which the least memory is alive at once. It uses plain data,
no models.
"""
