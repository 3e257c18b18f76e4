package loader

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
)

// standardNames are what CUE's standard packages declare, by import path, without tool/*. A program can't
// ask CUE for them; TestStandardNames compares them with its source.
var standardNames = map[string][]string{
	"crypto/ed25519": strings.Fields("PublicKeySize Valid"),
	"crypto/hmac": strings.Fields(`
		MD5 SHA1 SHA224 SHA256 SHA384 SHA512 SHA512_224 SHA512_256 Sign
	`),
	"crypto/md5":    strings.Fields("BlockSize Size Sum"),
	"crypto/sha1":   strings.Fields("BlockSize Size Sum"),
	"crypto/sha256": strings.Fields("BlockSize Size Size224 Sum224 Sum256"),
	"crypto/sha512": strings.Fields(`
		BlockSize Size Size224 Size256 Size384 Sum384 Sum512 Sum512_224 Sum512_256
	`),
	"encoding/base64": strings.Fields("Decode DecodedLen Encode EncodedLen"),
	"encoding/csv":    strings.Fields("Decode Encode"),
	"encoding/hex":    strings.Fields("Decode DecodedLen Dump Encode EncodedLen"),
	"encoding/json": strings.Fields(`
		Compact HTMLEscape Indent Marshal MarshalStream Unmarshal UnmarshalStream Valid Validate
	`),
	"encoding/openapi": strings.Fields("MarshalSchema"),
	"encoding/toml":    strings.Fields("Marshal Unmarshal"),
	"encoding/yaml": strings.Fields(`
		Marshal MarshalStream Unmarshal UnmarshalStream Validate ValidatePartial
	`),
	"html": strings.Fields("Escape Unescape"),
	"list": strings.Fields(`
		Ascending Avg Comparer Concat Contains Descending Drop FlattenN IsSorted IsSortedStrings
		MatchN Max MaxItems Min MinItems Product Range Repeat Reverse Slice Sort SortStable
		SortStrings Sum Take UniqueItems
	`),
	"math": strings.Fields(`
		Above Abs Acos Acosh Asin Asinh Atan Atan2 Atanh AwayFromZero Below Cbrt Ceil Copysign
		Cos Cosh Dim E Erf Erfc Erfcinv Erfinv Exact Exp Exp2 Expm1 Floor Gamma Hypot Ilogb J0
		J1 Jacobi Jn Ldexp Ln10 Ln2 Log Log10 Log10E Log1p Log2 Log2E Logb MaxBase MaxExp
		MaxPrec MinExp Mod MultipleOf Phi Pi Pow Pow10 Remainder Round RoundToEven Signbit Sin
		Sinh Sqrt Sqrt2 SqrtE SqrtPhi SqrtPi Tan Tanh ToNearestAway ToNearestEven ToNegativeInf
		ToPositiveInf ToZero Trunc Y0 Y1 Yn
	`),
	"math/bits": strings.Fields("And At Clear Len Lsh OnesCount Or Rsh Set Xor"),
	"net": strings.Fields(`
		AbsURL AddIP AddIPCIDR CompareIP FQDN GlobalUnicastIP IP IPCIDR IPString IPv4 IPv4len
		IPv6 IPv6len InCIDR InterfaceLocalMulticastIP JoinHostPort LinkLocalMulticastIP
		LinkLocalUnicastIP LoopbackIP MulticastIP ParseCIDR ParseIP PathEscape PathUnescape
		QueryEscape QueryUnescape SplitHostPort ToIP16 ToIP4 URL UnspecifiedIP
	`),
	"path": strings.Fields(`
		Base Clean Dir Ext FromSlash IsAbs Join Match Plan9 Rel Resolve Split SplitList ToSlash
		Unix VolumeName Windows
	`),
	"regexp": strings.Fields(`
		Find FindAll FindAllNamedSubmatch FindAllSubmatch FindNamedSubmatch FindSubmatch Match
		QuoteMeta ReplaceAll ReplaceAllLiteral Valid
	`),
	"strconv": strings.Fields(`
		Atoi FormatBool FormatFloat FormatInt FormatUint IntSize IsGraphic IsPrint ParseBool
		ParseFloat ParseInt ParseNumber ParseUint Quote QuoteRune QuoteRuneToASCII
		QuoteRuneToGraphic QuoteToASCII QuoteToGraphic Unquote
	`),
	"strings": strings.Fields(`
		ByteAt ByteSlice Compare Contains ContainsAny Count Fields HasPrefix HasSuffix Index
		IndexAny Join LastIndex LastIndexAny MaxRunes MinRunes Repeat Replace Runes SliceRunes
		Split SplitAfter SplitAfterN SplitN ToCamel ToLower ToTitle ToUpper Trim TrimLeft
		TrimPrefix TrimRight TrimSpace TrimSuffix
	`),
	"struct":         strings.Fields("MaxFields MinFields"),
	"text/tabwriter": strings.Fields("Write"),
	"text/template":  strings.Fields("Execute HTMLEscape JSEscape"),
	"time": strings.Fields(`
		ANSIC April August December Duration February Format FormatDuration FormatString Friday
		Hour January July June Kitchen Kitchen24 March May Microsecond Millisecond Minute Monday
		Nanosecond November October Parse ParseDuration RFC1123 RFC1123Z RFC3339 RFC3339Date
		RFC3339Nano RFC822 RFC822Z RFC850 RubyDate Saturday Second September Split Sunday
		Thursday Time ToUnix ToUnixNano Tuesday Unix UnixDate Wednesday
	`),
	"uuid": strings.Fields(`
		FromInt MD5 Parse SHA1 ToInt URN Valid Variant Version ns variants
	`),
}

// standardPath returns the import path of the standard package that files call name, or "".
func standardPath(name string) string {
	for path := range standardNames {
		if path == name || strings.HasSuffix(path, "/"+name) {
			return path
		}
	}
	return ""
}

// standardQualifiers returns the names by which files call the standard packages, sorted.
func standardQualifiers() (names []string) {
	for _, path := range slices.Sorted(maps.Keys(standardNames)) {
		names = append(names, path[strings.LastIndex(path, "/")+1:])
	}
	return names
}

// otherPackage says what is written in place of a standard package that CUE does not have.
func otherPackage(path string) string {
	if p := standardPath(strings.ToLower(path)); p != "" {
		return fmt.Sprintf("did you mean %q?", p)
	}
	if p := nearest(path, slices.Sorted(maps.Keys(standardNames))); p != "" {
		return fmt.Sprintf("did you mean %q?", p)
	}
	return "the packages of this module begin with its name"
}

// standardWith returns the standard package, of those that constrain arguments, that declares a name whatever
// its case, and the name; it returns "" for none.
func standardWith(name string) (path, declared string) {
	for _, path := range []string{"strings", "list", "struct", "time", "net", "math", "regexp"} {
		for _, n := range standardNames[path] {
			if strings.EqualFold(n, name) {
				return path, n
			}
		}
	}
	return "", ""
}

// declares reports whether a standard package declares a name. It asks CUE about a name that is not in the
// list.
func declares(path, name string) bool {
	if slices.Contains(standardNames[path], name) {
		return true
	}
	v := cuecontext.New().CompileString(fmt.Sprintf("import p %q\nx: p.%s", path, name))
	return v.LookupPath(cue.ParsePath("x")).Err() == nil
}
