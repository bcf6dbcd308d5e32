import { parseSigningRequest } from "#apiserver/x509/signing-request.js";
import { assert, suite } from "../../../support/suite.js";

// By `openssl req -new`: an elliptic and an RSA key.
const ELLIPTIC =
  "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQkJ6Q0JyZ0lCQURBaE1SQXdEZ1lEVlFRS0RBZHlaV0ZrWlhKek1RMHdDd1lEVlFRRERBUnFZVzVsTUZrdwpFd1lIS29aSXpqMENBUVlJS29aSXpqMERBUWNEUWdBRXZwZUVrUUc0TWVmbmxHM2VpbFZSOFFDWmsxWjZPQUNCCmFPaFNRNDVZNXZja2psL0JteVUwQjRtcEd5NzZYSmtoNUZBclJGSnNNSGNCN2QxbEcyLzE1S0FyTUNrR0NTcUcKU0liM0RRRUpEakVjTUJvd0dBWURWUjBSQkJFd0Q0SU5ZUzVsZUdGdGNHeGxMbU52YlRBS0JnZ3Foa2pPUFFRRApBZ05JQURCRkFpQS9BSzZ1UTFrM2RwQjRvQzloT0NNVm1pRnBndW1WbmtXTk1HSGtVbUlmclFJaEFKcTI3Z3R5CkhITzE0MWZWVVY4TEVVNXhDRThSVGNhVVY2SjRGOG9xS2lnRwotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
const RSA =
  "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQ2tUQ0NBWGtDQVFBd0lURVFNQTRHQTFVRUNnd0hjbVZoWkdWeWN6RU5NQXNHQTFVRUF3d0VhbUZ1WlRDQwpBU0l3RFFZSktvWklodmNOQVFFQkJRQURnZ0VQQURDQ0FRb0NnZ0VCQUs3QVh4ZmxKemdNMll4ZWd6Z0ROeU5ECkdkT3QzcnNEdi9ERWprZzlxWStHU0h4bTdHVVFEZjNWcUVRZHhvRXh4UHhvYWVEekRqVlRsRHNlSnJILys1RDkKTVpLQVkyOVlVQ05PY1pVRDFVdHRMTmhONzEremFENnNhckkxRmVmZWFPQkd1dkxiNk9QMzVLKzNZU3lkaU9zNApwMjQvbUovTjNldE5NS2FVUFgxcjYyUzVYeHVSMzBUdUx5WTRMMjJKZGsvMkVFZTNXTVBqWVpycjJRTjJ5bW0zClEzdlhENUlhMFg3Sk54YXVlTDJ6KytKOEFlRy9NWGpoQXAzRlpvZVk5eXd4aTlPKzVObG91MzZRWFh4emVzNFgKbFBXK3VPZi81Q1hDVUdJYk9WMUljbWJRRzBxeFB2YkFtWHk2VDRBc2FZZ3l1T2d5Wkl4OUc1Q1FIb3IyRHVjQwpBd0VBQWFBck1Da0dDU3FHU0liM0RRRUpEakVjTUJvd0dBWURWUjBSQkJFd0Q0SU5ZUzVsZUdGdGNHeGxMbU52CmJUQU5CZ2txaGtpRzl3MEJBUXNGQUFPQ0FRRUFHQzFlbWU0cFZaTzJkc2UvTkJIR3dnd1NnTUw5SXFLWk05KzYKT2YwRXVmMFZmb1dEWTNMRnJicFBOaVVuV0pSWXBPcm5BbDJzaEQ0SitmMjhQUnJqTTg4VlpWbVJFeTRhWXY0TgpSMkNOdVd2RTVDL1VteDRBNXdLQnVqeUpjQS9hdFgvQkNYRm0zdEU0MHdNMFFuNVg4djlJRGdTQ2lwY1NHTDNpClMyRm5KOVRkTzVGQ0dKK2V3SnRGWTE5Vjh3bkR1WDhacGNOakc0ZmdXdjg1aEM1RnEwaVJQUTBRYnJnTERMYWwKc1ZVV0d0MzVjcDYwQmF2Z0pDTHBNYkxhL0duTHRXNmdrYUJjL1JYYm5DeVdESWJVRENNWUYrUHBGQUNpc3M1WgpTa0pDaUJYNUtkeTVwcnYvd2V6dzZqNjcwMXJaNlRYVExrY2IyeHlWQmltcDBKQUdBUT09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

const pemOf = (base64: string): string => Buffer.from(base64, "base64").toString();

suite("certificate signing request", (test) => {
  test("is parsed with its subject, key, and alternative names if created by OpenSSL", () => {
    for (const request of [ELLIPTIC, RSA]) {
      const { subject, publicKey, alternativeNames } = parseSigningRequest(pemOf(request));
      assert.match(subject.toString("latin1"), /readers.*jane/s);
      assert.ok(publicKey.length > 80);
      assert.match(alternativeNames?.toString("latin1") ?? "", /a\.example\.com/);
    }
  });

  test("is rejected if it was modified after signing, truncated, or not PEM", () => {
    const lines = pemOf(ELLIPTIC).split("\n");
    const body = Buffer.from(lines.slice(1, -2).join(""), "base64");
    body.write("root", body.indexOf("jane"));
    const changed = [lines[0], body.toString("base64"), "-----END CERTIFICATE REQUEST-----"].join("\n");
    assert.throws(() => parseSigningRequest(changed), "unable to verify certificate request signature");
    assert.throws(() => parseSigningRequest("text"), "PEM block type must be CERTIFICATE REQUEST");
    for (let end = 1; end < body.length; end++) {
      const cut = body.subarray(0, end).toString("base64");
      const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${cut}\n-----END CERTIFICATE REQUEST-----`;
      assert.throws(() => parseSigningRequest(pem), /malformed|truncated|incomplete|PEM block/);
    }
  });
});
