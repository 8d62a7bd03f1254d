package screen

// Box draws a border along the edge of r and returns what is inside it. A Rect
// that is too small for one is left as it is.
func (r Rect) Box(st Style) Rect {
	if r.W < 2 || r.H < 2 {
		return r
	}
	for x := 1; x < r.W-1; x++ {
		r.Set(x, 0, '─', st)
		r.Set(x, r.H-1, '─', st)
	}
	for y := 1; y < r.H-1; y++ {
		r.Set(0, y, '│', st)
		r.Set(r.W-1, y, '│', st)
	}
	r.Set(0, 0, '╭', st)
	r.Set(r.W-1, 0, '╮', st)
	r.Set(0, r.H-1, '╰', st)
	r.Set(r.W-1, r.H-1, '╯', st)
	return r.Inset(1, 1)
}
