// Command release writes what accompanies a built program: the licences of the modules linked into
// it, and its bill of materials. `make release`, the packages and the Dockerfile call it.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
)

const usage = `usage: release licenses PROGRAM   the licence texts of all that is linked into it
       release sbom PROGRAM       its bill of materials, as CycloneDX in JSON

PROGRAM is a kpulse-proxy built from this working tree. The output depends only on it and, for
the bill of materials, on $VERSION, $REVISION and $SOURCE_DATE_EPOCH.
`

// outputs are the commands.
var outputs = map[string]func(io.Writer, *program) error{
	"licenses": writeLicenses,
	"sbom":     writeSBOM,
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) != 2 || outputs[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p, err := inspect(ctx, args[1])
	if err == nil {
		out := bufio.NewWriter(stdout)
		if err = outputs[args[0]](out, p); err == nil {
			err = out.Flush()
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "release: %v\n", err)
		return 1
	}
	return 0
}
