import { createServingCertificate } from "#apiserver/x509/authority.js";
import { X509Certificate } from "node:crypto";
import { assert, suite } from "../../../support/suite.js";

suite("serving certificate", (test) => {
  test("is signed by the CA and valid for localhost and 127.0.0.1", () => {
    const { ca, certificate } = createServingCertificate();
    const authority = new X509Certificate(ca);
    const serving = new X509Certificate(certificate);
    assert.ok(authority.ca);
    assert.ok(serving.verify(authority.publicKey));
    assert.ok(serving.checkIssued(authority));
    assert.is(serving.checkIP("127.0.0.1"), "127.0.0.1");
    assert.is(serving.checkHost("localhost"), "localhost");
    assert.not.ok(serving.ca);
  });

  test("has a CA of its own for each server", () => {
    assert.is.not(createServingCertificate().ca, createServingCertificate().ca);
  });
});
