package view

import (
	"testing"
)

// TestChartGrid compares grids with those worked out by hand for an aspect of 9 : 2.
func TestChartGrid(t *testing.T) {
	for _, test := range []struct{ n, w, h, columns, rows int }{
		{4, 71, 66, 1, 4}, {4, 71, 20, 2, 2}, {4, 150, 9, 4, 1}, {4, 100, 9, 2, 1}, {2, 71, 18, 1, 2}, {1, 40, 30, 1, 1}, {4, 36, 9, 1, 1}, {4, 36, 40, 1, 4},
	} {
		if columns, rows := chartGrid(test.n, test.w, test.h); columns != test.columns || rows != test.rows {
			t.Errorf("%d charts in %d × %d: %d × %d, want %d × %d", test.n, test.w, test.h, columns, rows, test.columns, test.rows)
		}
	}
}
