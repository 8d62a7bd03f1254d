package exposition_test

// quirks are bodies that show the oddities of Prometheus' parser, and what
// fuzzing found. They are also the seeds of fuzzing.
var quirks = []string{
	"",
	"\n\n \t\n",
	"a 1",
	"a 1\n\n  \nb 2\n",
	"a{gpu=\"0\"} 1\na{gpu=\"1\"} 2\nb{gpu=\"0\"} 3\nb{gpu=\"1\"} 4\na{gpu=\"0\"} 5\n",
	// A quoted name may be empty, even before any other name.
	"# TYPE \"\" gauge\na 1\n",
	"# HELP \"\" a\n# TYPE \"\" gauge\n{\"\"} 1\na 1\n",
	// Values.
	"a 1\na -1\na +1\na -0\na .5\na 5.\na .\na -\na --1\na 1.5e3\na 1E-3\na 1e400\na 1e-400\na 1e\n",
	"a NaN\na nan\na +Inf\na -inf\na infinity\na infinities\na 0x1p-2\na 0x10\na 1_000\na 1P3\na 1d\n",
	"a 9007199254740991\na 9007199254740992\na 9007199254740993\na 18446744073709551616\na 9223372036854775794\n",
	"a 0.1\na 0.000001\na 123456.789012\na 0.1234567890123456789\na 0.00000000000000000000001\na 00000000000000000000001.5\n",
	"a Tesla T4\na ERROR - FAILED TO CONVERT TO STRING\na\na \na{x=\"y\"}\na{x=\"y\"} \nb 1\n",
	// The value needs no blank before it.
	"a-1\na.5\na+Inf\na\"1\"\na{x=\"y\"}5\na{x=\"y\"}-5 7\nab{c=\"d\"}NaN\n",
	// Timestamps.
	"a 1 123\na 1 123 \na 1\t 00000000000000000000000000001\na 1 -1\na 1 1.5\na 1 1 1\na 1 12a\n",
	"a 1 9223372036854775807\na 1 9223372036854775808\na 1 99999999999999999999\na 1 {\na 1{x=\"y\"}\n",
	// Blanks before a name are a part of it; before a brace they are not.
	"  a 1\n\ta{x=\"y\"} 1\n a {x=\"y\"} 1\n  {\"a\"} 1\na{x=\"y\"} 1\na\t {x=\"y\"}\t 1\t \n  kpulse_a 1\n",
	// Commas and equals signs.
	"a{} 1\na{,} 1\na{x=\"y\",} 1\na{x=\"y\",,} 1\na{,x=\"y\"} 1\na{x=\"y\" z=\"w\"} 1\na{x=\"y\"z=\"w\"} 1\n",
	"a{ x = \"y\" , z\t=\t\"w\" , } 1\na{x==\"y\"} 1\na{x\"y\"} 1\na{x} 1\na{=\"y\"} 1\na{x=y} 1\na{x=\"y\"\n",
	"a{x=\"y\"}} 1\na{{x=\"y\"} 1\na{x=\"y\"}{x=\"y\"} 1\na{x:y=\"z\"} 1\na{1x=\"z\"} 1\na:b{x1=\"z\"} 1\n:a 1\n1a 1\na.b 1\n",
	"a{x=\"}\"} 1\na{x=\"{}\",y=\"}\"} 1\na{x=\"} 1\"} 2\na{x=\"y\",x=\"z\"} 1\na{__name__=\"b\"} 1\na{A=\"b\"} 1\n",
	// Escapes.
	"a{x=\"\\\"\"} 1\na{x=\"\\\\\"} 1\na{x=\"\\n\"} 1\na{x=\"\\x\\\\n\\\\\\n\"} 1\na{x=\"\\\"} 1\na{x=\"y\\\\\\\"z\"} 1\n",
	// Newlines in quotes, and what is left when such an entry fails.
	"a{x=\"one\ntwo\"} 1\nb 2\n",
	"a{x=\"one\n# HELP b c\nb 1\ntwo\"} x\nc 3\n",
	"a{x=\"\nb{x=\"\nc{x=\"\nd 1\n",
	"a{x=\"\\\ny\"} 1\na{\"\\\ny\"=\"z\"} 1\n{\"a\nb\"} 1\n{\"a\nb\",\"c\nd\"=\"e\nf\"} 1\n",
	"kpulse_a{x=\"one\ntwo\"} 1\nb 2\n",
	"a{x=\"y",
	"a{x=\"y\\",
	"a{x",
	"a{x=",
	"a{",
	"a{x=\"y\"} 1 2",
	"{\"a",
	// Quoted names.
	"{\"a.b\",x=\"y\"} 1\n{\"a.b\"} 2\n{x=\"y\",\"a.b\"} 3\n{x=\"y\" \"a.b\"} 4\n{\"a.b\" x=\"y\"} 5\n{\"a.b\",} 6\n{\"a.b\",,} 7\n",
	"{\"a\",\"b\"} 1\na{\"b\"} 1\na{\"b\",x=\"y\"} 1\na{\"b\"=\"c\"} 1\n{\"a\"=\"b\"} 1\n{x=\"y\"} 1\n{} 1\n{\"\"} 1\n{\"\",\"\"=\"\"} 1\n",
	"{\"a\\\"b\\\\c\\nd\\e\"} 1\n{\"a\",\"x\\\"y\"=\"z\"} 1\n{\"a\\",
	// A block that is valid without a name is invalid after one, and the reverse.
	"{\"foo\"} 1\nbar{\"foo\"} 1\n{\"foo\"} 1\nfoo{x=\"y\"} 1\n{x=\"y\"} 1\nfoo{x=\"y\"} 1\n",
	"# HELP a.b c\n# HELP \"a.b\" c\na.b{x=\"y\"} 1\n{\"a.b\"} 1\na.b{x=\"y\"} 1\n{\"\"} 1\n{x=\"y\"} 1\n",
	// HELP, TYPE and comments.
	"# HELP a text\n# TYPE a gauge\na 1\n#HELP a\n# HELPa b\n# HELP\n# HELP \n# HELP a\n# HELP a \n# HELP a  b \n#\n# \n#a\n",
	"# HELP a one\n# HELP a two\n# HELP b \\\\ \\n\n  # HELP c d\n#\tHELP\td\te\n# help a b\n# HELP 1 b\n# HELP a-b\n# HELP \"a\"b\n# HELP ab\"c\n",
	"# TYPE a counter\n# TYPE a gauge\n# TYPE a histogram\n# TYPE a summary\n# TYPE a untyped\n# TYPE a unknown\n# TYPE a\n# TYPE a  gauge\n# TYPE a gauge \n# TYPE a-gauge\n# TYPE\n# TYPE \n# TYPE a gaugehistogram\n",
	"# HELP \"a.b\" c\n# TYPE \"a.b\" gauge\n# HELP \"a\nb\" c\n# HELP \"a\\\"b\" c\n# HELP \"a\\\nb\" c\n# HELP \"a c\n# HELP \"\" c\n# TYPE \"a\"gauge\n# TYPE \"a\" gauge\n",
	"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"1.0\"} 2\nx x\nh_bucket{le=\"1\"} 3\n# TYPE s summary\ns{quantile=\"0.50\"} 1\n",
	"# EOF\n# UNIT a b\na 1 # {x=\"y\"} 1\n",
	// Bytes that are not UTF-8.
	"a{x=\"\xff\"} 1\n{\"a\xff\"} 1\na{\"x\xff\"=\"y\"} 1\n# HELP a \xff\n# HELP \"\xff\" a\n# TYPE \"\xff\" gauge\n# \xff\n\xff 1\na \xff\na\xff 1\n",
	"a{x=\"\xe2\x82\xac\"} 1\n# HELP a \xe2\x82\xac\n# HELP a \xe2\x82\n",
	// CRLF.
	"# HELP a b\r\n# TYPE a gauge\r\na 1\r\na{x=\"y\"} 1\r\n\r\n# c\r\na 1 2\r\na 1 \r\n",
	// NUL bytes.
	"\x00\na 1\n",
	" \x00\na 1\n",
	"#\x00\n# \x00\n#a\x00\n# a\x00\n# \x00HELP a b\na 1\n",
	"# HE\x00LP a b\n# HELP\x00 \x00a b\n# HELP \x00 a b\n# HELP a\x00 b\n# HELP a \x00\n# HELP a \x00b\n# HELP a b\x00\n# HELP \"a\x00\" b\n# H\x00\n# HELP \"a\"\x00b\n",
	"# TYPE a gau\x00ge\n# TYPE\x00 a gauge\n# TYPE a \x00gauge\n# HELP a \x00 \x00\n# HELP a x\x00\n",
	"a{x=\"\x00\"} 1\na{x=\"y\"\x00} 1\na{x=\"y\"\x00\x00,z=\"w\"\x00\x00\x00} 1\na{x=\x00\"y\"} 1\na{x= \x00 \x00\"y\"} 1\na{x\x00=\"y\"} 1\n",
	"a{x=\"\\\x00n\"} 1\na{x=\"\\\x00\"\"} 1\na{x=\"\\\x00\n\"} 1\na{\"x\x00\"=\"y\"} 1\na{\"x\\\x00\"=\"y\"} 1\na\x00 1\na 1\x00\na 1 2\x00\na{x=\"y\"}\x00 1\n{\x00\"a\"} 1\n",
	// What a server refuses after its parser, and what it does not.
	"a{x=\"1\",x=\"2\"} 1\na{x=\"1\",y=\"2\",x=\"1\"} 1\na{x=\"\",x=\"2\"} 1\na{x=\"1\",x=\"\",x=\"3\"} 1\na{\"x\"=\"1\",x=\"2\"} 1\na{x=\"1\"} 2\n",
	"a{__name__=\"a\"} 1\na{__name__=\"\"} 1\n{\"a\",__name__=\"b\"} 1\n{\"a\",__name__=\"\"} 1\na{__name__=\"\",__name__=\"b\"} 1\n",
	"a{\"\"=\"b\"} 1\na{\"\"=\"\"} 1\na{\"\"=\"b\",\"\"=\"\"} 1\na{\"x\xff\"=\"\"} 1\n{\" a\"} 1\n{\"a b\",\"x y\"=\"z\"} 1\n",
	"a{x=\"one\nb 2\",x=\"two\nc 3\"} 1\nd 4\n a{x=\"one\nb 2\"} 1\nd 5\n",
	// Our own families.
	"# HELP kpulse_a b\n# TYPE kpulse_a gauge\nkpulse_a 1\nkpulse_a{x=\"y\"} 2\nkpulse_b 1\nkpulse_c x\n{\"kpulse_d\"} 1\n# HELP \"kpulse_e\\\"\" f\n{\"kpulse_e\\\"\"} 1\nkpulsea 1\nkpulse_ 1\n",
	"a 1\nkpulse_a 1\na 2\nkpulse_a 1\nkpulse_a 1\na x\na 3\n",
}
