package tui

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/colorprofile"

	"github.com/kpulse/kpulse-proxy/internal/tui/view"
)

// variable returns the last value of a variable in an environment, or "".
func variable(environ []string, name string) string {
	for _, pair := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// profileOf returns how many colours the terminal at out shows, by the environment, its
// terminfo and tmux. NO_COLOR with any value means none; colorprofile itself obeys only 1
// and true.
func profileOf(out io.Writer, environ []string) colorprofile.Profile {
	profile := max(colorprofile.Detect(out, environ), colorprofile.ASCII) // bold and reverse work without TERM
	if variable(environ, "NO_COLOR") != "" {
		profile = min(profile, colorprofile.ASCII)
	}
	return profile
}

// depthOf returns how many colours to draw with.
func depthOf(p colorprofile.Profile) view.Depth {
	switch p {
	case colorprofile.TrueColor:
		return view.TrueColor
	case colorprofile.ANSI256:
		return view.Colors256
	case colorprofile.ANSI:
		return view.Colors16
	}
	return view.NoColors
}

// lightBackground reports whether COLORFGBG, which some terminals set, names a light
// background: the last of its numbers is one of the 16 colours.
func lightBackground(environ []string) bool {
	_, last, _ := strings.Cut(variable(environ, "COLORFGBG"), ";")
	if i := strings.LastIndexByte(last, ';'); i >= 0 {
		last = last[i+1:]
	}
	color, err := strconv.Atoi(last)
	return err == nil && (color == 7 || color > 8)
}

// asciiOnly reports whether the locale's charset is not UTF-8. Without a charset, the locale
// counts as UTF-8, except C and POSIX.
func asciiOnly(environ []string) bool {
	locale := cmp.Or(variable(environ, "LC_ALL"), variable(environ, "LC_CTYPE"), variable(environ, "LANG"))
	_, charset, named := strings.Cut(locale, ".")
	charset, _, _ = strings.Cut(charset, "@")
	if !named {
		return locale == "C" || locale == "POSIX"
	}
	return !strings.EqualFold(strings.ReplaceAll(charset, "-", ""), "utf8")
}
