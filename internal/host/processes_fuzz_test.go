package host

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/procfs"
)

// FuzzProcessName: whatever a process calls itself, it is shown on one printable line, of words that it
// wrote, and never as nothing if either text has a character to show.
func FuzzProcessName(f *testing.F) {
	f.Add("python\n", "python\x00train.py\x00--lr\x000.1\x00")
	f.Add("nv queue\n", "")
	f.Add("(x\n\x1b\u202e)\n", "\x00\x00")
	f.Add("worker", "worker: busy\x00\x00\x00\x00")
	f.Add("x", "\xff\xfe\x00\u200b\x00 "+strings.Repeat("ä", 200))
	dir := f.TempDir()
	fs, err := procfs.NewFS(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, comm, cmdline string) {
		m := machine{t, dir}
		m.write("42/comm", comm)
		m.write("42/cmdline", cmdline)
		process, err := fs.Proc(42)
		if err != nil {
			t.Fatal(err)
		}
		name, line := command(process, false), command(process, true)
		shown := line
		if line == "["+name+"]" {
			shown = name
		}
		for _, text := range []string{name, shown} {
			if !utf8.ValidString(text) || len(text) > maxCommand || strings.TrimSpace(text) != text || strings.Contains(text, "  ") {
				t.Errorf("%q, %q is shown as %q", comm, cmdline, text)
			}
			for _, r := range text {
				if !unicode.IsPrint(r) || !strings.ContainsRune(comm+cmdline+" …\ufffd", r) {
					t.Errorf("%q, %q is shown as %q, with %q", comm, cmdline, text, r)
				}
			}
		}
		if shows := func(r rune) bool { return unicode.IsPrint(r) && r != ' ' }; strings.ContainsFunc(comm, shows) && (name == "" || line == "") || strings.ContainsFunc(cmdline, shows) && line == "" {
			t.Errorf("%q, %q is shown as %q, and %q", comm, cmdline, name, line)
		}
	})
}
