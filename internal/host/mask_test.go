package host

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// secret is in no expected text: whatever is masked, none of it may be left.
const secret = "hunter2"

func TestMask(t *testing.T) {
	const (
		hex40  = "0123456789abcdef0123456789abcdef01234567"
		base64 = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEYab=="
	)
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		// What people want to see stays.
		{"nothing", nil, ""},
		{"training", []string{"python", "-u", "train.py", "--lr=3e-4", "--model", "meta-llama/Meta-Llama-3-70B-Instruct-GPTQ"}, "python -u train.py --lr=3e-4 --model meta-llama/Meta-Llama-3-70B-Instruct-GPTQ"},
		{"counts of tokens", []string{"vllm", "--max-num-batched-tokens", "8192", "--max-tokens=4k", "--tokenizer", "gpt2", `{"max_tokens": 256, "n": 2}`}, `vllm --max-num-batched-tokens 8192 --max-tokens=4k --tokenizer gpt2 {"max_tokens": 256, "n": 2}`},
		{"author", []string{"x", "--author=me", "--bypass=1", "compass:2"}, "x --author=me --bypass=1 compass:2"},
		{"path", []string{"x", "--data", "/n/holylabs/LABS/group9/Everyone/datasets/imagenet"}, "x --data /n/holylabs/LABS/group9/Everyone/datasets/imagenet"},
		{"device", []string{"x", "--gpu", "GPU-8a1e6d56-1b1b-4b52-9d53-3f6ac1f4b1ab"}, "x --gpu GPU-8a1e6d56-1b1b-4b52-9d53-3f6ac1f4b1ab"},
		{"-p of unknown programs", []string{"server", "-p", "8080", "-port=1"}, "server -p 8080 -port=1"},
		{"flag after a flag", []string{"x", "--use-auth", "--port", "80", "--auth", "-v"}, "x --use-auth --port 80 --auth -v"},
		{"last flag", []string{"x", "--token"}, "x --token"},
		{"no value", []string{"x", "TOKEN=", "train.py"}, "x TOKEN= train.py"},
		{"URL", []string{"x", "http://localhost:8000/v1?page=2", "git@github.com:a/b"}, "x http://localhost:8000/v1?page=2 git@github.com:a/b"},

		// Flags.
		{"flag", []string{"x", "--token", secret, "go"}, "x --token *** go"},
		{"flag with text", []string{"x", "--password", "my " + secret, "go"}, "x --password *** go"},
		{"flag with a value like a flag", []string{"x", "--token", "-Abc" + secret, "go"}, "x --token *** go"},
		{"flag with a value like a flag of Go", []string{"x", "--secret", "-" + secret, "go"}, "x --secret *** go"},
		{"flag =", []string{"x", "--token=" + secret, "--password=a " + secret}, "x --token=*** --password=***"},
		{"flag of Go", []string{"x", "-api-key", secret, "-dbPassword=" + secret}, "x -api-key *** -dbPassword=***"},
		{"number", []string{"x", "--token", "123456", "--api-key=1"}, "x --token *** --api-key=***"},
		{"after an empty one", []string{"x", "--password", "", "go", ""}, "x --password *** go ''"},
		{"private key", []string{"x", "--private_key", secret, "--ssl-key", secret}, "x --private_key *** --ssl-key ***"},
		{"override of hydra", []string{"train", "+logger.wandb.api_key=" + secret, "lr=1"}, "train +logger.wandb.api_key=*** lr=1"},
		{"property of Java", []string{"java", "-Ddb.password=" + secret, "-Xmx1g"}, "java -Ddb.password=*** -Xmx1g"},

		{"last words", []string{"x", "GITHUB_PAT=" + secret, "--otp", secret, "--compat=1", "--path", "p"}, "x GITHUB_PAT=*** --otp *** --compat=1 --path p"},
		{"setting", []string{"aws", "configure", "set", "aws_secret_access_key", secret, "--profile", "p"}, "aws configure set aws_secret_access_key *** --profile p"},
		{"setting that is none", []string{"aws", "configure", "set", "region", "eu", "x", "config", "set"}, "aws configure set region eu x config set"},
		{"literal", []string{"kubectl", "create", "--from-literal=a=" + secret, "--from-literal", "b=" + secret}, "kubectl create --from-literal=*** --from-literal ***"},

		// Assignments.
		{"AWS", []string{"env", "AWS_ACCESS_KEY_ID=" + secret, "AWS_SESSION_TOKEN=" + secret, "AWS_REGION=eu"}, "env AWS_ACCESS_KEY_ID=*** AWS_SESSION_TOKEN=*** AWS_REGION=eu"},
		{"environment", []string{"env", "AWS_SECRET_ACCESS_KEY=" + secret + "/+", "HF_TOKEN=" + secret + " b", "A=b", "python"}, "env AWS_SECRET_ACCESS_KEY=*** HF_TOKEN=*** A=b python"},
		{"within a flag", []string{"docker", "run", "--env=DB_PASSWD=" + secret, "-e", "GOOGLE_CREDENTIALS=" + secret}, "docker run --env=DB_PASSWD=*** -e GOOGLE_CREDENTIALS=***"},
		{"account key", []string{"x", "AccountName=a;AccountKey=" + secret + "==;B=c"}, "x AccountName=a;AccountKey=***"},
		{"shell", []string{"sh", "-c", "cd /d && WANDB_API_KEY=" + secret + " python t.py --token '" + secret + " x' --n 1"}, "sh -c cd /d && WANDB_API_KEY=*** python t.py --token '***' --n 1"},
		{"quoted", []string{"sh", "-c", `export A=1 TOKEN="a ` + secret + `\" b" B=2`}, `sh -c export A=1 TOKEN="***" B=2`},
		{"quoted and joined", []string{"sh", "-c", `go PASSWORD="a"` + secret + ` B=2`}, `sh -c go PASSWORD="***" B=2`},
		{"quote that does not end", []string{"sh", "-c", `go PASSWORD="a ` + secret, "b"}, `sh -c go PASSWORD="*** b`},
		{"INI", []string{"sh", "-c", "echo password = " + secret}, "sh -c echo password = ***"},
		{"query", []string{"curl", "http://h/x?user=a&access_token=" + secret + "&b=c"}, "curl http://h/x?user=a&access_token=***"},
		{"openssl", []string{"openssl", "enc", "-pass", "pass:" + secret, "-passin=" + secret, "-k", secret}, "openssl enc -pass *** -passin=*** -k ***"},

		// JSON and what looks like it.
		{"JSON", []string{"x", `{"user":"a","password":"a ` + secret + `","n":1}`}, `x {"user":"a","password":"***","n":1}`},
		{"JSON with space", []string{"x", `{"api_key" : "` + secret + `", "n": 1}`}, `x {"api_key" : "***", "n": 1}`},
		{"JSON with a quote", []string{"x", `{"secret":"a\" ` + secret + `","n":1}`}, `x {"secret":"***","n":1}`},
		{"JSON in a shell", []string{"sh", "-c", `curl -d "{\"token\":\"a ` + secret + `\",\"n\":1}" h`}, `sh -c curl -d "{\"token\":\"***\",\"n\":1}" h`},
		{"number in JSON", []string{"x", `{"token": 8675309}`}, `x {"token": ***`},
		{"Python", []string{"python", "-c", "f(auth='" + secret + "', n=1); d={'token': '" + secret + "'}"}, "python -c f(auth='***', n=1); d={'token': '***'}"},
		{"YAML", []string{"x", "user: a\npassword: " + secret + "\n"}, "x user: a password: ***"},

		{"environment in Python", []string{"python", "-c", `os.environ["HF_TOKEN"] = "` + secret + `"; os.environ['N']='1'`}, `python -c os.environ["HF_TOKEN"] = "***"; os.environ['N']='1'`},
		{"default in Python", []string{"python", "-c", "os.environ.setdefault('HF_TOKEN', '" + secret + "')"}, "python -c os.environ.setdefault('HF_TOKEN', '***')"},
		{"list of arguments", []string{"x", `["--token","` + secret + `","--n","1"]`}, `x ["--token","***","--n","1"]`},

		// URLs.
		{"webhook", []string{"x", "https://hooks.slack.com/services/T0/B0/" + secret, "URL=https://discord.com/api/webhooks/1/" + secret}, "x https://hooks.slack.com/services/*** URL=https://discord.com/api/webhooks/***"},
		{"URL with a password", []string{"x", "postgres://bob:" + secret + "@db:5432/x"}, "x postgres://***@db:5432/x"},
		{"URL with a token", []string{"git", "clone", "https://" + secret + "@github.com/a/b"}, "git clone https://***@github.com/a/b"},
		{"URL with an odd password", []string{"x", "redis://:a/b@" + secret + "#@cache/0"}, "x redis://***@cache/0"},
		{"no scheme", []string{"x", "--broker", "bob:" + secret + "@mq:5672"}, "x --broker bob:***@mq:5672"},

		// Headers.
		{"header", []string{"curl", "-H", "Authorization: Bearer " + secret, "http://h"}, "curl -H Authorization: *** http://h"},
		{"header of another scheme", []string{"curl", "-H", "authorization: AWS4-HMAC a " + secret, "h"}, "curl -H authorization: *** h"},
		{"header in a shell", []string{"sh", "-c", `curl -H "Authorization: Basic ` + secret + `==" http://h`}, `sh -c curl -H "Authorization: ***" http://h`},
		{"header in words", []string{"Authorization:", "Bearer", secret, "h"}, "Authorization: *** h"},
		{"header with a key", []string{"curl", "-H", "X-Api-Key: a " + secret, "h"}, "curl -H X-Api-Key: *** h"},
		{"cookie", []string{"curl", "--cookie", "a=" + secret + "; b=c"}, "curl --cookie ***"},
		{"bearer alone", []string{"x", "Bearer " + secret + "z"}, "x Bearer ***"},

		// Programs.
		{"mysql", []string{"/usr/bin/mysql", "-u", "bob", "-p" + secret, "db"}, "/usr/bin/mysql -u bob -p*** db"},
		{"mysql in a shell", []string{"sh", "-c", "mysqldump -p" + secret + " db"}, "sh -c mysqldump -p*** db"},
		{"sshpass", []string{"sudo", "sshpass", "-p", "a " + secret, "ssh", "h"}, "sudo sshpass -p *** ssh h"},
		{"redis", []string{"redis-cli", "-a", secret}, "redis-cli -a ***"},
		{"curl with flags in one", []string{"curl", "-sSu", "bob:" + secret, "-kLubob:" + secret, "-sS", "-XPUT", "-vk"}, "curl -sSu *** -kLu*** -sS -XPUT -vk"},
		{"curl", []string{"curl", "-u", "bob:" + secret, "--user=bob:" + secret, "--user-agent", "x"}, "curl -u *** --user=*** --user-agent x"},

		// Shapes.
		{"Hugging Face", []string{"x", "hf_AbCdEfGhIjKlMnOpQrStUvWx"}, "x ***"},
		{"GitHub", []string{"x", "ghp_0123456789abcdefABCD", "github_pat_11AAAA_bbbb"}, "x *** ***"},
		{"OpenAI", []string{"x", "sk-proj-abcDEF123456", "key:sk-ant-api03-xyz_123"}, "x *** key:***"},
		{"AWS", []string{"x", "AKIAIOSFODNN7EXAMPLE"}, "x ***"},
		{"JWT", []string{"x", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_def-ghi"}, "x ***"},
		{"NVIDIA", []string{"x", "nvapi-abcdefgh_IJKL-1234"}, "x ***"},
		{"hexadecimal", []string{"wandb", "login", hex40}, "wandb login ***"},
		{"base64", []string{"x", "--seed", base64}, "x --seed ***"},
		{"base64 after =", []string{"x", "--blob=" + base64}, "x --blob=***"},
		{"PEM", []string{"x", "-----BEGIN RSA PRIVATE KEY-----\nMIIE " + secret + "\n", "y"}, "x *** y"},

		// Text that is not for terminals.
		{"controls", []string{"a\nb\tc\x1b[31m", "\x00\u202e", "\xffé"}, "a b c [31m \uFFFD \uFFFDé"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := mask(c.args); got != c.want {
				t.Errorf("%q\n got %q\nwant %q", c.args, got, c.want)
			}
			if strings.Contains(c.want, secret) {
				t.Error("the test wants a secret to be shown")
			}
		})
	}
}

func TestMaskCuts(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{strings.Repeat("z", 256)}, strings.Repeat("z", 256)},
		{[]string{strings.Repeat("z", 257)}, strings.Repeat("z", 253) + "…"},
		{[]string{strings.Repeat("é", 200)}, strings.Repeat("é", 126) + "…"},
		{[]string{strings.Repeat("z", 252), "bcdef"}, strings.Repeat("z", 252) + "…"},
		// What is cut is the masked text.
		{[]string{strings.Repeat("z", 240), "--token", strings.Repeat("Z", 300)}, strings.Repeat("z", 240) + " --token ***"},
	} {
		if got := mask(c.args); got != c.want || len(got) > 256 {
			t.Errorf("%q\n got %q\nwant %q", c.args, got, c.want)
		}
	}
}

// TestMaskHidesWhereverItStands puts a secret behind names and into texts in every
// way, each with others before and behind it.
func TestMaskHidesWhereverItStands(t *testing.T) {
	const value = "Zq" + secret + "Zq"
	forms := []string{
		"%n=%v", "--%n=%v", "--%n\x00%v", "-%n\x00%v", "%n:%v", `{"%n":"%v"}`, `{'%n': '%v'}`, `{"a":{"%n":"%v"}}`,
		"--env\x00%n=%v", "--env=%n=%v", "sh\x00-c\x00export %n=%v; run", "sh\x00-c\x00run --%n %v", "sh\x00-c\x00run --%n \"%v\"",
		"http://h/?%n=%v", "x.y.%n=%v", "%n%3D%v",
	}
	names := []string{"token", "TOKEN", "ApiKey", "api_key", "api-key", "HF_TOKEN", "password", "passwd", "DB_PASS", "secret", "client_secret", "aws_secret_access_key", "private_key", "credentials", "auth", "authToken", "passphrase"}
	for _, form := range forms {
		for _, name := range names {
			text := strings.NewReplacer("%n", name, "%v", value).Replace(form)
			for _, around := range [][2]string{{"", ""}, {"run\x00", "\x00--n\x001"}, {"--verbose\x00", "\x00x=y"}} {
				if got := mask(strings.Split(around[0]+text+around[1], "\x00")); strings.Contains(got, secret) || !strings.Contains(got, masked) {
					t.Errorf("%q: %q", around[0]+text+around[1], got)
				}
			}
		}
	}
}

func FuzzMask(f *testing.F) {
	for _, seed := range []string{
		"python\x00train.py\x00--token\x00abc", "sh\x00-c\x00TOKEN='a b' x", `x` + "\x00" + `{"password":"a\"b","n":[1,2]}`,
		"curl\x00-H\x00Authorization: Bearer abcdefgh", "x\x00http://a:b@c/d@e", "mysql\x00-pabc\x00-p", "\xff\xfe\x00\x00=\x00:",
		strings.Repeat("--token ", 60), strings.Repeat("z", 250) + " --password \"b c\"", "-----BEGIN X",
		"x " + strings.Repeat("Ab1", 20), `TOKEN=\\\"a\\\" b`, "token:\x00'\x00'", "auth%3Da",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\x00")
		got := mask(args)
		if len(got) > 256 {
			t.Errorf("%d bytes", len(got))
		}
		if !utf8.ValidString(got) {
			t.Errorf("%q is no UTF-8", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q has %q", got, got[i:])
		}
		if again := mask(strings.Fields(got)); again != got {
			t.Errorf("masked again, %q is %q", got, again)
		}
		if again := mask(args); again != got {
			t.Errorf("%q is %q or %q", args, got, again)
		}
	})
}

// FuzzMaskHides has any text for the value of a flag that says that it is secret,
// and of an assignment.
func FuzzMaskHides(f *testing.F) {
	for _, seed := range []string{"abc", "a b", `"a" b`, "'", `\"`, "-x", "--x", "=", "…", "a@b://c", "1", "Bearer x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		const canary = "CANARY"
		value = "A" + value + canary // no flag
		for _, args := range [][]string{{"x", "--token", value, "y"}, {"x", "--token=" + strings.NewReplacer(`"`, "", "'", "").Replace(value), "y"}} {
			if got := mask(args); strings.Contains(got, canary) {
				t.Errorf("%q: %q", args, got)
			}
		}
	})
}
