package expose

import (
	"math/bits"
	"strings"
)

// What RFC 1951 lays down for repetitions.
const (
	minLength   = 3
	maxLength   = 258
	maxDistance = 32 << 10
)

// Symbols of the alphabet of literals and lengths. Those below are bytes.
const (
	endOfBlock  = 256
	firstLength = 257
)

// literalBits and distanceBits are how many bits the code of each symbol has, as
// hexadecimal digits. It is Huffman's own code, of at most twelve bits, for what
// deflater makes of expositions of several exporters, of 1 to 1024 GPUs, together
// with our series. Any digits with a sum of 2^-digit of one are a valid code.
const (
	literalBits = "cccccccccc5ccccccccccccccccccccc" + // the newline is common
		"5c6bcbcbbbcb857b5555555555abc8cc" + // from the space to ?: digits are common
		"c9a99899a8bb99998b89889abaccccc7" + // from @ to _
		"c555656887b978767b776788b9a9c8cc" + // from ` on
		"cccccccccccccccccccccccccccccccc" + // no ASCII
		"cccccccccccccccccccccccccccccccc" +
		"cccccccccccccccccccccccccccccccc" +
		"cccccccccccccccccccccccccccccccc" +
		"c" + // the end of the block
		"cbcbc89a7688778868567777877ba" // lengths
	distanceBits = "ccbbbbab7877733446563335676556"
)

// lengthExtras are how many bits follow the code of each symbol for a length
// (RFC 1951, section 3.2.5).
const lengthExtras = "00000000111122223333444455550"

// lineEnds are the bytes behind which a line of an exposition may be again as one
// before it was.
const lineEnds = "\" \n"

// code is what stands for a symbol, its first bit the lowest.
type code struct {
	bits uint32
	n    uint8
	last bool // of a literal: it is one of lineEnds
}

// codes are all that is written instead of bytes.
type codes struct {
	literals   [256]code
	endOfBlock code
	lengths    [maxLength + 1]code // by the length, with the extra bits
	distances  [32]code            // by the symbol, without them

	// head is the beginning of the file, up to where the packed bytes begin, and
	// headRest its last bits.
	head     []byte
	headRest bitString
}

// packing are the codes that all files are written in. Nobody changes them.
var packing = newCodes()

func newCodes() *codes {
	c := &codes{}
	symbols := huffman(literalBits)
	for b := range c.literals {
		c.literals[b] = symbols[b]
		c.literals[b].last = strings.IndexByte(lineEnds, byte(b)) >= 0
	}
	c.endOfBlock = symbols[endOfBlock]
	length := minLength
	for i, digit := range lengthExtras {
		symbol, width := symbols[firstLength+i], uint8(digit-'0')
		for extra := range uint32(1) << width {
			c.lengths[length+int(extra)] = code{bits: symbol.bits | extra<<symbol.n, n: symbol.n + width}
		}
		length = min(length+1<<width, maxLength) // the last symbol takes it from the one before
	}
	copy(c.distances[:], huffman(distanceBits))
	c.head, c.headRest = head()
	return c
}

// huffman returns the code in which symbol i has digits[i] bits (RFC 1951, section
// 3.2.2): shorter codes come first, and those of one length in order.
func huffman(digits string) []code {
	list := make([]code, len(digits))
	next := uint16(0) // of the current length, its first bit the highest
	for n := 1; n < 16; n++ {
		next <<= 1
		for i := range digits {
			if bitsOf(digits[i]) == n {
				list[i] = code{bits: uint32(bits.Reverse16(next) >> (16 - n)), n: uint8(n)}
				next++
			}
		}
	}
	return list
}

// bitsOf returns the value of a hexadecimal digit.
func bitsOf(digit byte) int { return strings.IndexByte("0123456789abcdef", digit) }

// head returns the head of a gzip member without name and time (RFC 1952), and of
// the one block in it (RFC 1951, section 3.2.7): that it is the last one, and how
// many bits the code of each symbol has. Those numbers stand there in a code of
// their own, which here is four bits for each.
func head() (whole []byte, rest bitString) {
	whole = append(make([]byte, 0, 256), 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255)
	put := func(value, n int) {
		rest = rest.add(uint32(value), uint8(n))
		if rest.n >= 8 {
			whole = append(whole, byte(rest.bits))
			rest = bitString{rest.bits >> 8, rest.n - 8}
		}
	}
	put(1, 1)
	put(2, 2) // codes of our own
	put(len(literalBits)-firstLength, 5)
	put(len(distanceBits)-1, 5)
	const forms = 19 // 16 numbers, and three ways to repeat one, which come first
	put(forms-4, 4)
	for form := range forms {
		if form < 3 {
			put(0, 3)
		} else {
			put(4, 3)
		}
	}
	for _, digit := range []byte(literalBits + distanceBits) {
		put(int(bits.Reverse8(byte(bitsOf(digit)))>>4), 4)
	}
	return whole, rest
}
