package checks

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

var update = flag.Bool("update", false, "write deploy/xids.md anew")

// TestReference: deploy/xids.md has the table of XIDs.
func TestReference(t *testing.T) {
	const page = "../../deploy/xids.md"
	want := xidReference()
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is out of date (%v): go test ./internal/checks -run TestReference -update", page, err)
	}
}

func xidReference() []byte {
	var b bytes.Buffer
	b.WriteString(`# XIDs

Generated from internal/canonical/xids.csv by ` + "`go test ./internal/checks -run TestReference -update`" + `;
` + "`kpulse-proxy explain xid 79`" + ` explains one code.

An XID is an error code that NVIDIA's driver reports for a board. Its effect on health depends on the severity of its row:

| severity | effect on health |
|---|---|
`)
	for s, means := range severityMeans {
		fmt.Fprintf(&b, "| %s | %s |\n", canonical.Severity(s), means)
	}
	b.WriteString(`
A code without a row is a warning without an action, and so is a code on a board that its row excludes ("not on").
If the driver reports a recovery action, that outranks the table.

Published tables of XIDs contradict each other: one tool treats a code as fatal, another as harmless or as a fault of the
program. This table follows the "immediate action" of NVIDIA's catalog; the last column names the source of each row, and
sources that disagree. If your machines show otherwise, change the row in the [config file](config.example.yml); that applies
to all boards:

` + "```yaml" + `
xids:
  109: warning                           # a severity, with the action that goes with it
  31: {severity: none, action: none}     # or both
` + "```" + `

| XID | severity | action | what it means, and what to do | not on | source |
|---|---|---|---|---|---|
`)
	cell := strings.NewReplacer("|", `\|`, "<", "&lt;")
	for _, r := range canonical.XIDs() {
		fmt.Fprintf(&b, "| %d<br>%s | %s | %s | %s %s | %s | %s |\n", r.Code, r.Mnemonic, r.Severity, r.Action,
			cell.Replace(r.Meaning), cell.Replace(r.Advice), strings.Join(r.Except, ", "), cell.Replace(r.Source))
	}
	return b.Bytes()
}
