import { parseLabelSelector } from "#apiserver/read/selectors.js";
import { assert, suite } from "../../../support/suite.js";
import { messageOf } from "../../../support/api/status-message.js";

const KEY_RULE =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
  "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end " +
  "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
  "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const LONG = "a".repeat(64);

suite("label selector", (test) => {
  test("matches labels by equality, sets, existence, and comparison", () => {
    const labels = { app: "web", tier: "", size: "7", in: "in" };
    const table: [selector: string, want: boolean][] = [
      ["", true],
      ["app=web", true],
      ["app==web", true],
      ["app=db", false],
      ["app!=db", true],
      ["app!=web", false],
      ["other!=db", true],
      ["app in (db, web)", true],
      ["app in (db)", false],
      ["other in (db)", false],
      ["app notin (db)", true],
      ["other notin (db)", true],
      ["app notin (web)", false],
      ["app", true],
      ["other", false],
      ["!other", true],
      ["!app", false],
      ["tier=", true],
      ["tier in ()", true],
      ["tier in (,x)", true],
      ["app=", false],
      ["size>6", true],
      ["size>7", false],
      ["size<8", true],
      ["app>1", false],
      ["other<1", false],
      ["app=web,size>6,!other", true],
      ["app=web,size>7", false],
      ["in in (in)", true],
      ["  app  =  web  ", true],
      ["toString", false],
    ];
    for (const [selector, want] of table) assert.is(parseLabelSelector(selector)(labels), want, selector);
  });

  test("rejects syntax errors with the message of Kubernetes", () => {
    const table: [selector: string, want: string][] = [
      ["a=b=c", "found '=', expected: ',' or 'end of string'"],
      [",a", "found ',', expected: !, identifier, or 'end of string'"],
      ["(", "found '(', expected: !, identifier, or 'end of string'"],
      ["a,", "found '', expected: identifier after ','"],
      ["a,,b", "found ',', expected: identifier after ','"],
      ["!a=b", "found '=', expected: ',' or 'end of string'"],
      ["a=b c", "found 'c', expected: ',' or 'end of string'"],
      ["a in (b))", "found ')', expected: ',' or 'end of string'"],
      ["a in b", "unable to parse requirement: found 'b' expected: '('"],
      ["a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
      ["a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"],
      ["a)", "unable to parse requirement: found ')', expected: in, notin, =, ==, !=, gt, lt"],
      ["!", "unable to parse requirement: found '', expected: identifier"],
      ["!!a", "unable to parse requirement: found '!', expected: identifier"],
      ["a===b", "unable to parse requirement: found '=', expected: identifier"],
      ["a=(", "unable to parse requirement: found '(', expected: identifier"],
      ["a><b", "unable to parse requirement: found '<', expected: identifier"],
      ["a in (b", "unable to parse requirement: found '', expected: ',' or ')'"],
      ["a in (b c", "unable to parse requirement: found 'c', expected: ',' or ')'"],
      ["a in (b!c)", "unable to parse requirement: found '!', expected: ',' or ')'"],
      ["a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"],
      ["a in (b,=", "unable to parse requirement: found '=', expected: ',', or identifier"],
      [
        "a>b",
        `unable to parse requirement: values[0]: Invalid value: "b": for 'Gt', 'Lt' operators, the value must be an integer`,
      ],
      ["a>-1", `unable to parse requirement: values[0][a]: Invalid value: "-1": ${VALUE_RULE}`],
      ["-x", `unable to parse requirement: <nil>: Invalid value: "-x": name part ${KEY_RULE}`],
      ["/x", `unable to parse requirement: <nil>: Invalid value: "/x": prefix part must be non-empty`],
      [
        "x/y/z",
        `unable to parse requirement: <nil>: Invalid value: "x/y/z": a valid label key ${KEY_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
      ],
      [LONG, `unable to parse requirement: <nil>: Invalid value: "${LONG}": name part must be no more than 63 bytes`],
      [
        `a=${LONG}`,
        `unable to parse requirement: values[0][a]: Invalid value: "${LONG}": must be no more than 63 bytes`,
      ],
      [
        "a in (-y,-x)",
        `unable to parse requirement: [values[0][a]: Invalid value: "-x": ${VALUE_RULE}, values[1][a]: Invalid value: "-y": ${VALUE_RULE}]`,
      ],
    ];
    for (const [selector, want] of table)
      assert.is(
        messageOf(() => parseLabelSelector(selector)),
        want,
        selector,
      );
  });
});
