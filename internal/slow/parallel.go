package slow

import (
	"flag"
	"strconv"
)

// atOnce exceeds the number of cores of most machines.
const atOnce = 20

// Parallel raises the number of parallel tests of a package whose tests mostly wait, unless
// -parallel is given. TestMain calls it first.
func Parallel() {
	if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
		panic(err)
	}
}
