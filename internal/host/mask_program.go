package host

import (
	"regexp"
	"slices"
	"strings"
)

// programs take secrets after flags whose names say nothing, or something else in
// other programs.
var programs = []struct{ names, flags []string }{
	{[]string{"mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mariadb", "mariadb-dump", "mariadb-admin"}, []string{"-p"}},
	{[]string{"mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"}, []string{"-p"}},
	{[]string{"sshpass", "docker", "podman", "nerdctl", "az", "7z", "7za"}, []string{"-p"}},
	{[]string{"redis-cli"}, []string{"-a"}},
	{[]string{"curl"}, []string{"-u", "-U", "--user", "--proxy-user"}},
	{[]string{"http", "https"}, []string{"-a"}},
	{[]string{"ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami"}, []string{"-w"}},
	{[]string{"smbclient"}, []string{"-U"}},
	{[]string{"mosquitto_pub", "mosquitto_sub", "sqlcmd", "bcp", "zip", "unzip", "ipmitool"}, []string{"-P"}}, //nolint:misspell // the programs of that name
	{[]string{"openssl"}, []string{"-k", "-K"}},
}

// maskPrograms masks what follows the flags of known programs, in the same
// argument or the next one.
func maskPrograms(text string) string {
	var out strings.Builder
	var flags []string // of the program last seen
	for i := 0; i < len(text); {
		end := endOf(text, i, endOfWord)
		word := text[i:end]
		flag := flagOf(word, flags)
		switch {
		case flag == "":
			out.WriteString(word)
			flags = flagsAfter(word, flags)
		case flag == word && end < len(text):
			out.WriteString(text[i : end+1])
			end = maskNext(&out, text, end+1, text[end:end+1])
		case flag == word:
			out.WriteString(word)
		default:
			out.WriteString(flag + masked)
		}
		if i = end; i < len(text) {
			out.WriteByte(text[i])
			i++
		}
	}
	return out.String()
}

// bundle matches flags of curl's that take no value, at the beginning of several in
// one.
var bundle = regexp.MustCompile(`^-[fgiIjkLlnNOqRsSv]+`)

// flagOf returns the flag that word is, or begins with, "" if it is none of flags.
func flagOf(word string, flags []string) string {
	for _, flag := range flags {
		long := strings.HasPrefix(flag, "--")
		switch {
		case word == flag, !long && strings.HasPrefix(word, flag):
			return flag
		case !long && len(flag) == 2 && bundle.MatchString(word):
			// As the last of several flags in one, curl -sSu.
			if i := strings.IndexByte(word, flag[1]); i > 0 && bundle.FindString(word) == word[:i] {
				return word[:i+1]
			}
		case long && strings.HasPrefix(word, flag+"="):
			return flag + "="
		}
	}
	return ""
}

// flagsAfter returns the flags that count from word on, which may be the name of a
// program, on its own or within the text of sh -c.
func flagsAfter(word string, flags []string) []string {
	base := word[strings.LastIndexByte(word, '/')+1:]
	base = strings.Trim(base, "\"'`;|&()$")
	for i := range programs {
		if slices.Contains(programs[i].names, base) {
			return programs[i].flags
		}
	}
	return flags
}
