"""Compiled kernels, and the eight-wide row operations that they are built from."""

from rareswitch.lanes.kernel import (
    WIDTH,
    add_products,
    add_row,
    add_rows,
    add_squares,
    announced,
    compiled,
    dot_four,
    first_largest,
    fma,
    high_product,
    kernels,
    lane_zeros,
    multiply_row,
    multiply_tile,
    padded_length,
    triangular_squares,
)

__all__ = ["WIDTH", "add_products", "add_row", "add_rows", "add_squares", "announced", "compiled", "dot_four"]
__all__ += ["first_largest", "fma", "high_product", "lane_zeros", "multiply_row", "multiply_tile", "padded_length"]
__all__ += ["kernels", "triangular_squares"]
