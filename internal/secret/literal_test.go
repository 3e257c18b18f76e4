package secret_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/internal/secret"
)

// alphabet and hexDigits are bodies of tokens, without order. The tokens below are put together in the test,
// so that no scanner takes this file for a leak.
const (
	alphabet  = "k3Xq9ZbT7mWc2RvN8sLd4HyJ6pGf1QaE5uKxB0tYwMoPiVrCnDzFgShUjA3eI7lO9"
	hexDigits = "3f9a1c7e5b2d80466fd1a93e7c25b8f04e6d1a2b9c7f3058e4d6b1a09f2c7e53"
)

func n(prefix string, body string, length int) string { return prefix + body[:length] }

// TestSecrets has, for each place, secrets that are found there.
func TestSecrets(t *testing.T) {
	t.Parallel()
	lower := strings.ToLower(alphabet)
	upper := "QX7ZB3TMWC2RVN5SLD4HYJ6PGFAQEKUX"
	texts := map[string]string{ // by themselves, whatever their name is
		"github-pat":                            n("ghp_", alphabet, 36),
		"github-fine-grained-pat":               "github_pat_" + alphabet[:22] + "_" + alphabet[:59],
		"github-oauth":                          n("gho_", alphabet, 36),
		"github-app-token":                      n("ghs_", alphabet, 36),
		"github-refresh-token":                  n("ghr_", alphabet, 36),
		"gitlab-pat":                            n("glpat-", alphabet, 20),
		"gitlab-deploy-token":                   n("gldt-", alphabet, 20),
		"gitlab-runner-authentication-token":    n("glrt-", alphabet, 20),
		"slack-bot-token":                       "xoxb-" + "8472910365-5830174629-" + alphabet[:24],
		"slack-user-token":                      "xoxp-" + "8472910365-5830174629-9173640285-" + hexDigits[:32],
		"slack-app-token":                       "xapp-1-" + upper[:11] + "-8472910365-" + hexDigits,
		"slack-webhook-url":                     "https://hooks.slack.com/services/" + upper[:9] + "/" + upper[3:14] + "/" + alphabet[:24],
		"aws-access-token":                      n("AKIA", upper, 16),
		"aws-amazon-bedrock-api-key-long-lived": n("ABSK", alphabet+alphabet, 109),
		"gcp-api-key":                           n("AIza", alphabet, 35),
		"stripe-access-token":                   n("sk_live_", alphabet, 24),
		"anthropic-api-key":                     "sk-ant-api03-" + n("", alphabet+alphabet, 93) + "AA",
		"openai-api-key":                        "sk-proj-" + n("", alphabet+alphabet, 58) + "T3BlbkFJ" + n("", alphabet+alphabet, 58),
		"huggingface-access-token":              n("hf_", strings.Map(letters, alphabet+alphabet), 34),
		"npm-access-token":                      n("npm_", lower, 36),
		"pypi-upload-token":                     "pypi-AgEIcHlwaS5vcmc" + alphabet[:55],
		"sendgrid-api-token":                    "SG." + alphabet + alphabet[:1],
		"digitalocean-pat":                      n("dop_v1_", hexDigits, 64),
		"shopify-access-token":                  n("shpat_", hexDigits, 32),
		"twilio-api-key":                        n("SK", hexDigits, 32),
		"linear-api-key":                        n("lin_api_", lower, 40),
		"notion-api-token":                      "ntn_" + "84729103658" + n("", alphabet, 35),
		"postman-api-token":                     "PMAK-" + hexDigits[:24] + "-" + hexDigits[:34],
		"databricks-api-token":                  n("dapi", hexDigits, 32),
		"doppler-api-token":                     n("dp.pt.", lower, 43),
		"dynatrace-api-token":                   "dt0c01." + upper[:24] + "." + upper + upper,
		"grafana-service-account-token":         "glsa_" + alphabet[:32] + "_" + hexDigits[:8],
		"planetscale-password":                  n("pscale_pw_", alphabet, 40),
		"prefect-api-token":                     n("pnu_", lower, 36),
		"pulumi-api-token":                      n("pul-", hexDigits, 40),
		"rubygems-api-token":                    n("rubygems_", hexDigits, 48),
		"sentry-user-token":                     n("sntryu_", hexDigits, 64),
		"square-access-token":                   n("EAAA", alphabet, 60),
		"telegram-bot-api-token":                "telegram_token=" + "8472910365" + ":A" + alphabet[:34],
		"vault-service-token":                   n("hvs.", alphabet+alphabet, 95),
		"jwt":                                   "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI4NDcyOTEwMzY1In0." + alphabet[:43],
		"private-key":                           "-----BEGIN RSA PRIVATE KEY-----\n" + alphabet + "\n" + alphabet + "\n-----END RSA PRIVATE KEY-----",
		"age-secret-key":                        n("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
		"perplexity-api-key":                    n("pplx-", alphabet, 48),
		"clojars-api-token":                     n("CLOJARS_", lower, 60),
		"the password in a URL":                 "postgres://app:hunter22@db.internal:5432/app",
		"the value of api_key":                  "https://api.example.com/v1/search?q=x&api_key=" + hexDigits[:20],
		"the value of key":                      "https://maps.example.com/json?key=" + alphabet[:20],
		"a random value in a URL":               "https://api.example.com/v1/search?h=" + alphabet[:32],
	}
	for rule, value := range texts {
		for _, s := range []string{value, "Bearer " + value, "Send " + value + " with each call.", "It is sent along (" + value + ")."} {
			f, ok := secret.FindInText(s)
			if !ok {
				t.Errorf("%s: nothing found in %q", rule, s)
				continue
			}
			if f.Rule != rule {
				t.Logf("%s: found as %s", rule, f.Rule)
			}
			if s[f.At:f.At+len(f.Secret)] != f.Secret {
				t.Errorf("%s: at %d there is no %q", rule, f.At, f.Secret)
			}
			hidden(t, f, value)
		}
	}
	for _, test := range []struct{ name, value string }{
		{"Authorization", "Bearer " + alphabet[:12]},
		{"Authorization", "Basic YXBwOmh1bnRlcg=="},
		{"authorization", "token " + hexDigits[:16]},
		{"Proxy-Authorization", "Digest " + hexDigits[:32]},
		{"X-Api-Key", hexDigits[:16]},
		{"X-API-KEY", alphabet[:20]},
		{"Cookie", "session=" + alphabet[:22]},
		{"GITHUB_TOKEN", hexDigits[:40]},
		{"BRAVE_API_KEY", n("BSA", alphabet, 27)},
		{"apiKey", "a8f5f167f44f4964e6c998dee827110c"},
		{"DB_PASSWORD", "hunter22"},
		{"DB_PASSWORD", "correct1horse"},
		{"PGPASSWORD", "tr0ub4dor&3"},
		{"password", "letmein!"},
		{"MYSQL_PWD", "8472910365"},
		{"SMTP_PASS", "S3ndM3!now"},
		{"client_secret", "9f2c7e53-1a2b-4c7f-8058-e4d6b1a09f2c"},
		{"clientSecret", "qwxjkzvbnmtrpldf"},
		{"AZURE_CLIENT_SECRET", "Kx8~Q" + alphabet[:35]},
		{"SIGNING_KEY", hexDigits},
		{"accessToken", alphabet[:16]},
		{"REFRESH_TOKEN", "1//0" + alphabet[:30]},
		{"SENTRY_DSN", "https://" + hexDigits[:32] + ":s3cret9@o1.ingest.sentry.io/1"},
		{"jwt", alphabet[:32]},
		{"X-Auth", hexDigits[:24]},
	} {
		f, ok := secret.FindInField(test.name, test.value)
		if !ok {
			t.Errorf("Field(%q, %q): nothing found", test.name, test.value)
			continue
		}
		if test.value[f.At:f.At+len(f.Secret)] != f.Secret {
			t.Errorf("Field(%q, %q): at %d there is no %q", test.name, test.value, f.At, f.Secret)
		}
		hidden(t, f, f.Secret)
	}
	for _, test := range []struct{ before, arg string }{
		{"", "--token=" + alphabet[:16]},
		{"", "--api-key=" + hexDigits[:16]},
		{"", "-Dpassword=hunter22"},
		{"--token", alphabet[:16]},
		{"--password", "hunter22"},
		{"-e", "API_KEY=" + hexDigits[:20]},
		{"--header", "Authorization: Bearer " + alphabet[:16]},
		{"-H", "X-Api-Key:" + hexDigits[:16]},
		{"", "postgresql://app:hunter22@db/app"},
		{"", alphabet[:40]},
		{"--session", alphabet[:32]},
	} {
		f, ok := secret.FindInArgument(test.before, test.arg)
		if !ok {
			t.Errorf("Argument(%q, %q): nothing found", test.before, test.arg)
			continue
		}
		if test.arg[f.At:f.At+len(f.Secret)] != f.Secret {
			t.Errorf("Argument(%q, %q): at %d there is no %q", test.before, test.arg, f.At, f.Secret)
		}
	}
	for _, line := range []string{
		`headers: Authorization: "Bearer ` + alphabet[:16] + `` + "\"",
		`password: "hunter22" "x"`,
		`input.token == "` + hexDigits[:20] + `"`,
		`x: "` + n("ghp_", alphabet, 36),
	} {
		if _, ok := secret.FindInLine(line); !ok {
			t.Errorf("Line(%q): nothing found", line)
		}
	}
}

func letters(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}

// hidden: a message has at most four characters of a secret.
func hidden(t *testing.T, f secret.Literal, value string) {
	t.Helper()
	shown := f.Shown()
	for i := 0; i+5 <= len(value); i++ {
		if part := value[i : i+5]; strings.Contains(strings.TrimPrefix(shown, f.Rule), part) {
			t.Errorf("%q shows %q", shown, part)
		}
	}
}

// TestHarmless has what people write that is no secret.
func TestHarmless(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "x", "Get the current weather for a city.", "Use your API key, such as ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, to sign in.",
		"https://api.example.com/weather/{city}{?units,limit}", "https://user:{password}@api.example.com/", "https://api.example.com/?api_key={key}",
		"postgres://user:password@localhost/db", "https://api.example.com/?key=value&token=none", "postgresql://localhost/mydb?sslmode=disable",
		"https://example.com/a?page_token=next", "ssh://git@github.com/org/repo.git", "redis://cache:6379/0", "mailto:someone@example.com",
		".items[] | {key: .id, token: .next_page_token}", "def f($password): . + {password: $password};", "sk-...", "Bearer {token}", "Bearer ", "Basic",
		"sha256:" + hexDigits, "ghcr.io/org/server@sha256:" + hexDigits, "-----BEGIN CERTIFICATE-----", "eyJ is how a JWT begins", "AKIAIOSFODNN7EXAMPLE",
		"The token limit is 4096; the secret of good documents is to be short.", "key=value pairs, separated by commas", "git+https://github.com/o/r@3f9a1c7e5b2d80466fd1a93e7c25b8f04e6d1a2b",
	} {
		if f, ok := secret.FindInText(s); ok {
			t.Errorf("Text(%q): %s at %d", s, f.Rule, f.At)
		}
	}
	for _, test := range []struct{ name, value string }{
		{"Authorization", "Bearer {token}"}, {"Authorization", "Bearer ${GITHUB_TOKEN}"}, {"Authorization", "Bearer <token>"}, {"Authorization", "Bearer YOUR_TOKEN_HERE"},
		{"Authorization", "Bearer "}, {"Authorization", "Bearer anonymous"}, {"Authorization", "none"}, {"Authorization", "Basic {credentials}"},
		{"X-Api-Key", "changeme"}, {"X-Api-Key", "$API_KEY"}, {"X-Api-Key", "%API_KEY%"}, {"X-Api-Key", "xxxxxxxxxxxxxxxx"}, {"api_key", "********"},
		{"token", "true"}, {"token", "false"}, {"TOKEN", "null"}, {"token", "next_page"}, {"token", "id_token"}, {"token", "access-token-v2"}, {"GITHUB_TOKEN", "env:GITHUB_TOKEN"},
		{"secret", "env:SOME_NAME"}, {"secret", "file:secrets/key.pem"}, {"password", "password"}, {"password", "your-password"}, {"password", "secret"}, {"password_file", "/run/secrets/db1"},
		{"TOKEN_PATH", "/home/me/.token9"}, {"SECRET", "./secrets/token1.txt"}, {"token", "GITHUB_TOKEN"}, {"client_secret", "REDACTED-12345"}, {"auth", "oauth2"}, {"auth", "oauth2-bearer"},
		{"X-Auth", "required"}, {"cookie", "theme=dark"}, {"Cookie", "lang=en-US"}, {"max_tokens", "4096"}, {"token_type", "Bearer"}, {"api_key_version", "2024-06-18"},
		{"MCP-Protocol-Version", "2025-06-18"}, {"User-Agent", "catalogd/1.2.3 (+https://example.com)"}, {"Accept", "application/vnd.github+json"}, {"NODE_ENV", "production"},
		{"AWS_REGION", "eu-central-1"}, {"LANG", "en_US.UTF-8"}, {"PROJECT_ID", "9f2c7e53-1a2b-4c7f-8058-e4d6b1a09f2c"}, {"GIT_SHA", hexDigits[:40]}, {"primary_key", "user_id2"},
		{"sort_key", "created_at"}, {"cache_key", "user-profile-v2"}, {"keyboard", "qwerty12"}, {"description", "Bearer tokens are sent in the header."}, {"license", "Apache-2.0"},
		{"version", "v1.2.3-rc.1+build5"}, {"timeout", "30s"}, {"url", "https://api.example.com/v1"}, {"email", "bot2000@example.com"}, {"image", "mcp/server:1.2.3"},
		{"pattern", "^[A-Za-z0-9_-]{20,}$"}, {"tz", "Europe/Berlin"}, {"model", "claude-sonnet-4-5-20250929"}, {"signature", "(a, b) => c"}, {"author", "Ann Author 3rd"}, {"FOLDER_ID", "1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms"},
		{"token_endpoint", "https://example.com/oauth2/v1/token"}, {"credentials", "include"}, {"tokenizer", "cl100k_base"}, {"secret_name", "prod/db1/app"},
		{"secret", "db-credentials-prod1"}, {"token", "api_key_v2"}, {"x-token-count", "128000"}, {"password_policy", "min8-upper1"},
	} {
		if f, ok := secret.FindInSetting(test.name, test.value); ok {
			t.Errorf("Sent(%q, %q): %s at %d", test.name, test.value, f.Rule, f.At)
		}
	}
	for _, test := range []struct{ before, arg string }{
		{"", "--token={token}"}, {"--token", "{token}"}, {"--token", "--verbose"}, {"--token", "$TOKEN"}, {"", "--token-file=/run/token1"}, {"-y", "@modelcontextprotocol/server-github@2025.4.8"},
		{"-y", "mcp-remote@0.1.29"}, {"--from", "git+https://github.com/org/repo@3f9a1c7e5b2d80466fd1a93e7c25b8f04e6d1a2b"}, {"-e", "GITHUB_TOKEN"}, {"-e", "LOG_LEVEL=debug"},
		{"run", "ghcr.io/github/github-mcp-server@sha256:" + hexDigits}, {"", "--max-tokens=4096"}, {"--header", "Accept: application/json"}, {"--", "."}, {"-c", "import sys; print(sys.version)"},
		{"--project", "my-project-123456"}, {"", "/usr/lib/node_modules/@Org/Server2/dist/Index.js"}, {"--auth", "basic"}, {"--sheet-id", "1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms"}, {"", "--folderId=" + alphabet[:32]},
	} {
		if f, ok := secret.FindInArgument(test.before, test.arg); ok {
			t.Errorf("Argument(%q, %q): %s at %d", test.before, test.arg, f.Rule, f.At)
		}
	}
}

func BenchmarkField(b *testing.B) {
	secret.FindInField("Authorization", "Bearer {token}")
	for _, text := range []struct{ name, s string }{
		{"short", "celsius"}, {"url", "https://api.example.com/weather/{city}{?units,limit}"},
		{"sentence", "Get the current weather for a city, with the API key of the account and a token for the next page."},
		{"long", strings.Repeat("Search the issues of a repository and return one page of them with what is needed to ask for the next. ", 20)},
	} {
		b.Run(text.name, func(b *testing.B) {
			for b.Loop() {
				secret.FindInField("description", text.s)
			}
		})
	}
}

// TestManyAtOnce: rules are parsed and compiled by whoever comes first.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, ok := secret.FindInField("Authorization", "Bearer "+n("ghp_", alphabet, 36)); !ok {
				t.Error("nothing found")
			}
		})
	}
	all.Wait()
}
