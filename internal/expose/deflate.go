package expose

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/bits"
)

const (
	// minMatch is the shortest repetition that is looked for: as much as one load
	// compares. In an exposition what repeats is mostly a whole label block.
	minMatch = 8
	// minDistance is the nearest one that is taken. Those before it have codes of
	// another form, and are runs of a byte or two that no exposition holds.
	minDistance = 3
	// slotBits is the binary logarithm of how many positions are remembered.
	slotBits = 12
	// summed is how many bytes are summed, and then packed while they are still in
	// the cache.
	summed = 64 << 10
	// packedChunk is how many packed bytes are gathered before they are written.
	// The whole answer for sixteen GPUs fits, and then takes one write.
	packedChunk = 48 << 10
	// room is what any code of ours fits into, and the trailer of the file.
	room = 16
)

// deflater packs an exposition as one gzip member (RFC 1952). It takes about half
// the time of a general compressor at its fastest, and makes a tenth to a fifth more
// bytes. What it knows and such a one does not:
//
// A line repeats one before it but for a label or two and the value. So there are
// few places where a repetition can begin: where the last one ended, and behind
// the quote or newline that ends what differed. Only there the next eight bytes
// are looked up, instead of at every byte or two.
//
// What is worth finding is long. So the latest occurrence is taken as it is, and
// not compared with others.
//
// What differs is digits, and repetitions are about as long and as far apart in
// all expositions. So one Huffman code, found beforehand, serves all of them:
// nothing is counted, no tokens are kept, and the file is a single block.
//
// What is no exposition is packed rightly too, only badly. The zero deflater is
// ready for reset.
type deflater struct {
	w     io.Writer
	err   error
	begun bool // something was written

	sum  uint32 // CRC-32 of what was packed
	size uint32 // its length, modulo 2^32

	out  [packedChunk]byte // packed bytes that are not written yet
	end  int               // of out's content
	rest bitString         // fewer than eight bits that come behind

	// latest are positions in what is being packed, by a hash of the eight bytes
	// there. Those that share a slot, or are left from something else, do no harm:
	// the bytes are compared.
	latest [1 << slotBits]uint32
}

// reset begins a file that goes to w.
func (d *deflater) reset(w io.Writer) {
	d.w, d.err, d.begun = w, nil, false
	d.sum, d.size = 0, 0
	d.end = copy(d.out[:], packing.head)
	d.rest = packing.headRest
}

// Write packs p, and finds repetitions within p alone: it should be large. After an
// error, which is that of the writer below, it does nothing.
func (d *deflater) Write(p []byte) (int, error) {
	d.size += uint32(len(p))
	packed := 0
	for begin := 0; begin < len(p) && d.err == nil; begin += summed {
		end := min(begin+summed, len(p))
		d.sum = crc32.Update(d.sum, crc32.IEEETable, p[begin:end])
		packed = d.pack(p, packed, end)
	}
	return len(p), d.err
}

// pack packs p from i to end, and as far beyond as what begins there goes. It
// returns how far that is.
func (d *deflater) pack(p []byte, i, end int) int {
	for i < end {
		if len(p)-i < minMatch {
			i = d.literals(p, i)
			continue
		}
		next := binary.LittleEndian.Uint64(p[i:])
		slot := &d.latest[next*0x9E3779B185EBCA87>>(64-slotBits)] // any large odd number
		distance := i - int(*slot)
		*slot = uint32(i)
		if distance < minDistance || distance > maxDistance || binary.LittleEndian.Uint64(p[i-distance:]) != next {
			i = d.literals(p, i)
			continue
		}
		n := minMatch + commonPrefix(p[i-distance+minMatch:], p[i+minMatch:])
		d.repeat(n, distance)
		i += n
	}
	return i
}

// commonPrefix returns how many bytes at the beginning of a are those of b, which
// is no longer than a.
func commonPrefix(a, b []byte) int {
	n := 0
	for len(a) >= 8 && len(b) >= 8 {
		if differ := binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b); differ != 0 {
			return n + bits.TrailingZeros64(differ)/8
		}
		a, b = a[8:], b[8:]
		n += 8
	}
	for i := range b {
		if a[i] != b[i] {
			return n + i
		}
	}
	return n + len(b)
}

// literals packs p from i up to where the next repetition can begin, each byte by
// itself. It returns where that is.
func (d *deflater) literals(p []byte, i int) int {
	d.makeRoom()
	rest, end := d.rest, d.end
	for i < len(p) {
		c := &packing.literals[p[i]]
		rest = rest.add(c.bits, c.n)
		i++
		if rest.n >= 48 { // and another code fits into 64
			rest, end = rest.spill(d.out[:], end)
			d.end = end
			d.makeRoom()
			end = d.end
		}
		if c.last {
			break
		}
	}
	d.rest, d.end = rest.spill(d.out[:], end)
	return i
}

// repeat packs n bytes that stood distance before.
func (d *deflater) repeat(n, distance int) {
	far := uint32(distance - 1)
	width := uint8(bits.Len32(far)) - 2 // of what follows the code of the distance
	c := packing.distances[2*width+2+uint8(far>>width&1)]
	back := bitString{uint64(c.bits) | uint64(far&(1<<width-1))<<c.n, c.n + width}
	for n > 0 {
		k := min(n, maxLength)
		if left := n - k; 0 < left && left < minLength {
			k -= minLength
		}
		n -= k
		d.makeRoom()
		length := &packing.lengths[k]
		rest := d.rest.add(length.bits, length.n).addLong(back)
		d.rest, d.end = rest.spill(d.out[:], d.end)
	}
}

// close ends the file; flush must write the rest of it.
func (d *deflater) close() {
	d.makeRoom()
	d.rest, d.end = d.rest.add(packing.endOfBlock.bits, packing.endOfBlock.n).spill(d.out[:], d.end)
	if d.rest.n > 0 { // the last byte is filled up
		d.out[d.end] = byte(d.rest.bits)
		d.end++
	}
	d.makeRoom()
	binary.LittleEndian.PutUint32(d.out[d.end:], d.sum)
	binary.LittleEndian.PutUint32(d.out[d.end+4:], d.size)
	d.end += 8
}

// makeRoom makes room for room bytes in out.
func (d *deflater) makeRoom() {
	if d.end > len(d.out)-room {
		d.flush()
	}
}

// flush writes the bytes that are complete.
func (d *deflater) flush() {
	if d.err == nil && d.end > 0 {
		d.begun = true
		_, d.err = d.w.Write(d.out[:d.end])
	}
	d.end = 0
}

// bitString is up to 64 bits, the first of them the lowest.
type bitString struct {
	bits uint64
	n    uint8
}

// add returns s with n more bits behind it.
func (s bitString) add(bits uint32, n uint8) bitString {
	return bitString{s.bits | uint64(bits)<<(s.n&63), s.n + n}
}

// addLong returns s with more behind it.
func (s bitString) addLong(more bitString) bitString {
	return bitString{s.bits | more.bits<<(s.n&63), s.n + more.n}
}

// spill moves the whole bytes of s to dst[at:], where there must be room for
// eight. It returns what is left of s, and where the bytes end.
func (s bitString) spill(dst []byte, at int) (bitString, int) {
	binary.LittleEndian.PutUint64(dst[at:], s.bits)
	return bitString{s.bits >> (s.n &^ 7 & 63), s.n & 7}, at + int(s.n>>3)
}
