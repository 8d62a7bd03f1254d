package fake

import (
	"fmt"
	"strings"

	"github.com/kpulse/kpulse-proxy/internal/source/dcgmi/dcgmitest"
)

// The columns of dmon -l where stdout is no terminal: 80 columns less the 30 of
// the others.
const longName, shortName, fieldID = 50, 20, 10

// listFields prints all fields of the release.
func (f *fake) listFields() {
	rule := strings.Repeat("_", longName+shortName+fieldID)
	f.out.printf("%s\n%-*s%-*s%-*s\n%s\n", rule, longName, "Long Name", shortName, "Short Name", fieldID, "Field ID", rule)
	for _, field := range dcgmitest.Fields(f.release) {
		name := field.Name
		if len(name) > longName {
			name = name[:longName-3] + "..."
		}
		f.out.printf("%s", fmt.Sprintf("%-*s %-*s%d\n", longName, name, shortName, field.Column, field.ID))
	}
}
