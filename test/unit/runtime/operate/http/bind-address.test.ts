import { bindAddressOf, describeAddress, loopbackAddressOf } from "#runtime/operate/http-endpoint.js";
import { assert, suite } from "../../../../support/suite.js";

suite("bind address", (test) => {
  const good = {
    ":8081": { port: 8081 },
    "127.0.0.1:80": { host: "127.0.0.1", port: 80 },
    "localhost:0": { host: "localhost", port: 0 },
    "[::1]:8081": { host: "::1", port: 8081 },
  } as const;
  for (const [text, address] of Object.entries(good))
    test(`parses and formats ${text}`, () => {
      assert.equal(bindAddressOf("healthProbeBindAddress", text), address);
      assert.is(describeAddress(address), text);
    });

  test("is undefined for 0 or an empty string", () => {
    assert.is(bindAddressOf("healthProbeBindAddress", "0"), undefined);
    assert.is(bindAddressOf("healthProbeBindAddress", ""), undefined);
  });

  for (const text of ["8081", ":65536", "::1:8081", "a b:1", ":-1", "http://x:1"])
    test(`rejects ${text}`, () => {
      assert.throws(
        () => bindAddressOf("healthProbeBindAddress", text),
        new RegExp(
          `^healthProbeBindAddress is "${text}", and has to be an address such as ":8081" or "127.0.0.1:8081", or "0" for none$`,
        ),
      );
    });
});

suite("loopback address", (test) => {
  for (const text of ["127.0.0.1:8082", "localhost:0", "[::1]:8082", "127.1.2.3:1"])
    test(`accepts ${text}`, () => assert.is(describeAddress(loopbackAddressOf("debugBindAddress", text)!), text));

  test("is undefined for 0 or an empty string", () => {
    assert.is(loopbackAddressOf("debugBindAddress", "0"), undefined);
    assert.is(loopbackAddressOf("debugBindAddress", ""), undefined);
  });

  for (const text of [
    ":8082",
    "0.0.0.0:8082",
    "[::]:8082",
    "10.0.0.7:8082",
    "localhost.example.com:1",
    "[::ffff:127.0.0.1]:1",
  ])
    test(`rejects ${text}, which is reachable from other machines`, () =>
      assert.throws(
        () => loopbackAddressOf("debugBindAddress", text),
        `debugBindAddress is "${text}", and has to be a loopback address such as "127.0.0.1:8082" or "[::1]:8082", or "0" for none`,
      ));
});
