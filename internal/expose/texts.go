package expose

// texts are many short texts in one piece of memory.
type texts struct {
	bytes []byte
	ends  []int
}

// reset drops all texts and keeps the memory.
func (t *texts) reset() { t.bytes, t.ends = t.bytes[:0], t.ends[:0] }

func (t *texts) len() int { return len(t.ends) }

// at returns the i-th text.
func (t *texts) at(i int) []byte {
	begin := 0
	if i > 0 {
		begin = t.ends[i-1]
	}
	return t.bytes[begin:t.ends[i]]
}

// end ends a text that was appended to bytes.
func (t *texts) end() { t.ends = append(t.ends, len(t.bytes)) }
