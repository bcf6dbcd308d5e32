// Functions that read a text say of one that they cannot read what kube-apiserver 1.36 says.
import { compileExpression } from "@gen-operator/schema/cel";
import { assert, suite } from "../../support/suite.js";

/** By expression: texts, and what is said of them; undefined where they are taken. */
const PROBLEMS: Record<string, [text: string, problem: string | undefined][]> = {
  "ip(self)": [
    ["", 'IP Address "" parse error during conversion from string: ParseAddr(""): unable to parse IP'],
    [
      "1.2.3",
      'IP Address "1.2.3" parse error during conversion from string: ParseAddr("1.2.3"): IPv4 address too short',
    ],
    [
      "1.2.3.4.5",
      'IP Address "1.2.3.4.5" parse error during conversion from string: ParseAddr("1.2.3.4.5"): IPv4 address too long',
    ],
    [
      "1.2.3.256",
      'IP Address "1.2.3.256" parse error during conversion from string: ParseAddr("1.2.3.256"): IPv4 field has value >255',
    ],
    [
      "01.2.3.4",
      'IP Address "01.2.3.4" parse error during conversion from string: ParseAddr("01.2.3.4"): IPv4 field has octet with leading zero',
    ],
    [
      "1.2..3",
      'IP Address "1.2..3" parse error during conversion from string: ParseAddr("1.2..3"): IPv4 field must have at least one digit (at ".3")',
    ],
    [
      "1.2.3.x",
      'IP Address "1.2.3.x" parse error during conversion from string: ParseAddr("1.2.3.x"): unexpected character (at "x")',
    ],
    [
      "x.2.3.4",
      'IP Address "x.2.3.4" parse error during conversion from string: ParseAddr("x.2.3.4"): unexpected character (at "x.2.3.4")',
    ],
    [
      "1.2.3.4/8",
      'IP Address "1.2.3.4/8" parse error during conversion from string: ParseAddr("1.2.3.4/8"): unexpected character (at "/8")',
    ],
    ["::1%eth0", 'IP address "::1%eth0" with zone value is not allowed'],
    ["::ffff:1.2.3.4", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'],
    [
      "1:2:3",
      'IP Address "1:2:3" parse error during conversion from string: ParseAddr("1:2:3"): address string too short',
    ],
    [
      "1:2:3:4:5:6:7:8:9",
      'IP Address "1:2:3:4:5:6:7:8:9" parse error during conversion from string: ParseAddr("1:2:3:4:5:6:7:8:9"): trailing garbage after address (at "9")',
    ],
    [
      "::1::",
      'IP Address "::1::" parse error during conversion from string: ParseAddr("::1::"): multiple :: in address (at ":")',
    ],
    [
      "g::",
      'IP Address "g::" parse error during conversion from string: ParseAddr("g::"): each colon-separated field must have at least one digit (at "g::")',
    ],
    [
      "12345::",
      'IP Address "12345::" parse error during conversion from string: ParseAddr("12345::"): each group must have 4 or less digits (at "12345::")',
    ],
    [
      ":1:2:3:4:5:6:7",
      'IP Address ":1:2:3:4:5:6:7" parse error during conversion from string: ParseAddr(":1:2:3:4:5:6:7"): each colon-separated field must have at least one digit (at ":1:2:3:4:5:6:7")',
    ],
    [
      "1:2:3:4:5:6:7:",
      'IP Address "1:2:3:4:5:6:7:" parse error during conversion from string: ParseAddr("1:2:3:4:5:6:7:"): colon must be followed by more characters (at ":")',
    ],
    [
      "1:2:3:4:5:6:7::8",
      'IP Address "1:2:3:4:5:6:7::8" parse error during conversion from string: ParseAddr("1:2:3:4:5:6:7::8"): the :: must expand to at least one field of zeros',
    ],
    [
      "::1.2.3",
      'IP Address "::1.2.3" parse error during conversion from string: ParseAddr("::1.2.3"): IPv4 address too short',
    ],
    [
      "fe80::%",
      'IP Address "fe80::%" parse error during conversion from string: ParseAddr("fe80::%"): zone must be a non-empty string',
    ],
    [
      "1.2.3.4 ",
      'IP Address "1.2.3.4 " parse error during conversion from string: ParseAddr("1.2.3.4 "): unexpected character (at " ")',
    ],
  ],
  "cidr(self)": [
    [
      "1.2.3.4",
      "network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix(\"1.2.3.4\"): no '/'",
    ],
    [
      "1.2.3.4/33",
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("1.2.3.4/33"): prefix length out of range',
    ],
    [
      "1.2.3.4/-1",
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("1.2.3.4/-1"): bad bits after slash: "-1"',
    ],
    [
      "1.2.3.4/x",
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("1.2.3.4/x"): bad bits after slash: "x"',
    ],
    [
      "1.2.3.4/",
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("1.2.3.4/"): bad bits after slash: ""',
    ],
    [
      "1.2.3/8",
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("1.2.3/8"): ParseAddr("1.2.3"): IPv4 address too short',
    ],
    [
      "x/8",
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("x/8"): ParseAddr("x"): unable to parse IP',
    ],
    [
      "::/129",
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("::/129"): prefix length out of range',
    ],
    [
      "1.2.3.4/08",
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("1.2.3.4/08"): bad bits after slash: "08"',
    ],
    [
      "::ffff:1.2.3.4/100",
      'network address parse error during conversion from string: IPv4-mapped IPv6 address "::ffff:1.2.3.4/100" is not allowed',
    ],
    [
      "fe80::%x/8",
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("fe80::%x/8"): IPv6 zones cannot be present in a prefix',
    ],
    [
      "1.2.3.4/8/9",
      'network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("1.2.3.4/8/9"): ParseAddr("1.2.3.4/8"): unexpected character (at "/8")',
    ],
  ],
  "url(self)": [
    ["", 'URL parse error during conversion from string: parse "": empty url'],
    ["x", 'URL parse error during conversion from string: parse "x": invalid URI for request'],
    ["/x", undefined],
    ["http://", undefined],
    ["http://[::1", "URL parse error during conversion from string: parse \"http://[::1\": missing ']' in host"],
    ["http://a:b", 'URL parse error during conversion from string: parse "http://a:b": invalid port ":b" after host'],
    [
      "http://a b",
      'URL parse error during conversion from string: parse "http://a b": invalid character " " in host name',
    ],
    ["http://a/%zz", 'URL parse error during conversion from string: parse "http://a/%zz": invalid URL escape "%zz"'],
    [":x", 'URL parse error during conversion from string: parse ":x": missing protocol scheme'],
    ["http://a/ b", undefined],
    ["//a", undefined],
    ["a:b", undefined],
    ["1http://x", 'URL parse error during conversion from string: parse "1http://x": invalid URI for request'],
    ["http://a:99999", undefined],
    ["http://u:p@h/", undefined],
    ["http://%41", 'URL parse error during conversion from string: parse "http://%41": invalid URL escape "%41"'],
    [
      "\u0001",
      'URL parse error during conversion from string: parse "\\x01": net/url: invalid control character in URL',
    ],
  ],
  "semver(self)": [
    ["", "Version string empty"],
    ["1", "No Major.Minor.Patch elements found"],
    ["1.2", "No Major.Minor.Patch elements found"],
    ["1.2.3.4", 'Invalid character(s) found in patch number "3.4"'],
    ["01.2.3", 'Major number must not contain leading zeroes "01"'],
    ["1.02.3", 'Minor number must not contain leading zeroes "02"'],
    ["1.2.03", 'Patch number must not contain leading zeroes "03"'],
    ["a.2.3", 'Invalid character(s) found in major number "a"'],
    ["1.b.3", 'Invalid character(s) found in minor number "b"'],
    ["1.2.c", 'Invalid character(s) found in patch number "c"'],
    ["1.2.3-", "Prerelease is empty"],
    ["1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'],
    ["1.2.3-a_b", 'Invalid character(s) found in prerelease "a_b"'],
    ["1.2.3+", "Build meta data is empty"],
    ["1.2.3+a_b", 'Invalid character(s) found in build meta data "a_b"'],
    ["1.2.3-a..b", "Prerelease is empty"],
    ["v1.2.3", 'Invalid character(s) found in major number "v1"'],
    ["1.2.3-a+b+c", 'Invalid character(s) found in build meta data "b+c"'],
    [" 1.2.3", 'Invalid character(s) found in major number " 1"'],
    ["99999999999999999999.1.1", 'strconv.ParseUint: parsing "99999999999999999999": value out of range'],
    ["-1.2.3", 'Invalid character(s) found in major number "-1"'],
  ],
  "semver(self, true)": [
    ["", 'strconv.ParseUint: parsing "": invalid syntax'],
    ["v", 'strconv.ParseUint: parsing "": invalid syntax'],
    ["1", undefined],
    ["v1", undefined],
    ["1.2-a", "short version cannot contain PreRelease/Build meta data"],
    ["01.02.03", undefined],
    ["1.2.3.4", 'Invalid character(s) found in patch number "3.4"'],
    ["a", 'Invalid character(s) found in major number "a"'],
    ["v1.b", 'Invalid character(s) found in minor number "b"'],
    ["00", undefined],
    ["1.2+b", "short version cannot contain PreRelease/Build meta data"],
    [" 1.2", 'Invalid character(s) found in major number "0 1"'],
    ["1.2.3-", "Prerelease is empty"],
  ],
  "quantity(self)": [
    ["", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
    ["1", undefined],
    ["1x", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
    ["1.2.3", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
    ["x1", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
    ["1e", "unable to parse quantity's suffix"],
    ["1Ki1", "unable to parse quantity's suffix"],
    ["--1", "unable to parse quantity's suffix"],
    ["1 ", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
    ["1m", undefined],
    ["1E5", undefined],
    ["1e5x", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
    [".", undefined],
    ["+", undefined],
    ["1_000", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
    ["1KI", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  ],
  "'x'.find(self)": [
    ["(", "Illegal regex: error parsing regexp: missing closing ): `(`"],
    ["*", "Illegal regex: error parsing regexp: missing argument to repetition operator: `*`"],
  ],
  "self.format([1, 'x'])": [
    ["%d", undefined],
    ["%s", undefined],
    ["%z", 'could not parse formatting clause: unrecognized formatting clause "z"'],
    ["%", "unexpected end of string"],
    ["%d %s %s", "index 2 out of range"],
    ["%.3f", "error during formatting: fixed-point clause can only be used on doubles, was given int"],
    ["%e", "error during formatting: scientific clause can only be used on doubles, was given int"],
    ["%b", undefined],
    ["%x", undefined],
    ["%X", undefined],
    ["%o", undefined],
    ["%5d", 'could not parse formatting clause: unrecognized formatting clause "5"'],
    [
      "%.d",
      'could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax',
    ],
  ],
  "self.format(['x', 1])": [
    ["%d", "error during formatting: decimal clause can only be used on integers, was given string"],
    ["%f", "error during formatting: fixed-point clause can only be used on doubles, was given string"],
    ["%e", "error during formatting: scientific clause can only be used on doubles, was given string"],
    ["%b", "error during formatting: only integers and bools can be formatted as binary, was given string"],
    ["%x", undefined],
    ["%o", "error during formatting: octal clause can only be used on integers, was given string"],
    ["%s %s", undefined],
  ],
};

suite("CEL conversion error", (test) => {
  for (const [expression, problems] of Object.entries(PROBLEMS))
    for (const [text, problem] of problems)
      test(`matches that of kube-apiserver for ${expression} with ${JSON.stringify(text)}`, () =>
        assert.is(problemOf(expression, text), problem));
});

function problemOf(expression: string, self: string): string | undefined {
  const compilation = compileExpression(expression);
  if ("problem" in compilation) throw new Error(compilation.problem);
  const outcome = compilation.expression.evaluate({ self }, 1_000_000);
  return outcome.kind === "value" ? undefined : outcome.message;
}
