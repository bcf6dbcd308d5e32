import { bitString, der, explicit, integer, objectIdentifier, sequence } from "#apiserver/x509/der.js";
import { issueCertificate, createAuthority, subjectOf } from "#apiserver/x509/authority.js";
import { waitFor } from "#apiserver/wait-for.js";
import { generateKeyPairSync, sign, X509Certificate } from "node:crypto";
import { apiRequest, apiRequestOrThrow, type ApiObject, type Connection } from "../api/api-request.js";
import { assert, type DeclareTest } from "../suite.js";
import { PATIENCE, TEST_OPTIONS } from "./cluster-steps.js";

const REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const WHO_AM_I = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
const SELF = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
const CLIENT = "kubernetes.io/kube-apiserver-client";

interface SigningStatus {
  certificate?: string;
  conditions?: { type: string; reason: string; message: string }[];
}

type Shown = { certificate: string; key: string };
type Reviewed = ApiObject & {
  status?: { userInfo: { username: string; groups: string[]; extra?: Record<string, string[]> } };
};

let requests = 0;

/** Declares invariants of client certificates and CertificateSigningRequests. */
export function declareCertificateLaws(test: DeclareTest, connect: () => Promise<Connection>): void {
  test(
    "issues client certificates for approved requests, with user and groups from the subject",
    async () => {
      const cluster = await connect();
      const { key, request } = createRequest("jane", ["readers", "writers"]);
      const { certificate = "" } = await signed(cluster, request, { usages: ["digital signature", "client auth"] });
      const pem = Buffer.from(certificate, "base64").toString();
      const { status } = await whoAmI(cluster, { certificate: pem, key });
      const fingerprint = new X509Certificate(pem).fingerprint256.replaceAll(":", "").toLowerCase();
      assert.equal(status?.userInfo, {
        username: "jane",
        groups: ["readers", "writers", "system:authenticated"],
        extra: { "authentication.kubernetes.io/credential-id": [`X509SHA256=${fingerprint}`] },
      });
      const { ca, keyUsage, validFrom, validTo } = new X509Certificate(pem);
      assert.not.ok(ca);
      assert.equal(keyUsage, ["1.3.6.1.5.5.7.3.2"]);
      assert.ok(new X509Certificate(pem).checkIssued(new X509Certificate(cluster.ca ?? "")));
      assert.ok(Date.parse(validFrom) < Date.now() && Date.now() < Date.parse(validTo));
    },
    TEST_OPTIONS,
  );

  test(
    "issues certificates for the requested expirationSeconds",
    async () => {
      const cluster = await connect();
      const { request } = createRequest("short", []);
      const { certificate = "" } = await signed(cluster, request, { usages: ["client auth"], expirationSeconds: 3600 });
      const { validFrom, validTo } = new X509Certificate(Buffer.from(certificate, "base64"));
      // The certificate is valid from five minutes earlier, to allow for clock skew.
      assert.is((Date.parse(validTo) - Date.parse(validFrom)) / 1000, 3600 + 300);
    },
    TEST_OPTIONS,
  );

  test(
    "fails invalid requests with SignerValidationFailure, and leaves unapproved requests pending",
    async () => {
      const cluster = await connect();
      const { request } = createRequest("system:node:a", ["readers"]);
      const failureOf = async (signerName: string, usages: string[]) =>
        (await signed(cluster, request, { signerName, usages })).conditions?.find(({ type }) => type === "Failed");
      const cases: [signer: string, usages: string[], message: string][] = [
        [CLIENT, ["server auth"], "invalid usage for client certificate: server auth"],
        [CLIENT, ["digital signature"], "missing required usage for client certificate: client auth"],
        [`${CLIENT}-kubelet`, ["client auth"], "subject organization is not system:nodes"],
        ["kubernetes.io/kubelet-serving", ["server auth"], "subject organization is not system:nodes"],
      ];
      for (const [signer, usages, message] of cases) {
        const failure = await failureOf(signer, usages);
        assert.equal([failure?.reason, failure?.message], ["SignerValidationFailure", message]);
      }
      const { request: ofMasters } = createRequest("jane", ["system:masters"]);
      const refused = create(cluster, ofMasters, { usages: ["client auth"] });
      await assert.rejects(refused, `use of ${CLIENT} signer with system:masters group is not allowed`);
      const name = await create(cluster, request, { usages: ["client auth"] });
      await signed(cluster, request, { usages: ["client auth"] });
      assert.equal((await apiRequestOrThrow(cluster, `GET ${REQUESTS}/${name}`)).status, {});
    },
    TEST_OPTIONS,
  );

  test("rejects certificates of an unknown CA with 401", async () => {
    const cluster = await connect();
    const subject = subjectOf({ commonName: "jane", organizations: ["system:masters"] });
    const foreign = issueCertificate(createAuthority("gen-operator-apiserver-ca"), {
      subject,
      usages: ["client auth"],
    });
    const { code, message, reason } = (await whoAmI(cluster, foreign)) as unknown as Record<string, unknown>;
    assert.equal({ code, message, reason }, { code: 401, message: "Unauthorized", reason: "Unauthorized" });
  });

  test("rejects serving certificates with 401, and treats a client without a common name as anonymous", async () => {
    const cluster = await connect();
    const anonymous = createRequest("", ["readers"]);
    const { certificate = "" } = await signed(cluster, anonymous.request, { usages: ["client auth"] });
    const nameless = { certificate: Buffer.from(certificate, "base64").toString(), key: anonymous.key };
    const { message } = (await whoAmI(cluster, nameless)) as unknown as { message: string };
    assert.match(message, /User "system:anonymous" cannot create/);
    const { key, request } = createRequest("system:node:a", ["system:nodes"], ["a.example.com"]);
    const served = await signed(cluster, request, {
      signerName: "kubernetes.io/kubelet-serving",
      usages: ["digital signature", "server auth"],
    });
    const serving = { certificate: Buffer.from(served.certificate ?? "", "base64").toString(), key };
    assert.is(((await whoAmI(cluster, serving)) as unknown as { code: number }).code, 401);
    assert.is(new X509Certificate(serving.certificate).subjectAltName, "DNS:a.example.com");
  });
}

async function whoAmI(cluster: Connection, shown: Shown): Promise<Reviewed> {
  return (await apiRequest<Reviewed>({ ...cluster, token: "" }, WHO_AM_I, { body: SELF, shown })).body;
}

/** Creates a CertificateSigningRequest, and returns its name. */
async function create(cluster: Connection, request: string, spec: object): Promise<string> {
  const name = `request-${++requests}`;
  const body = { metadata: { name }, spec: { request, signerName: CLIENT, ...spec } };
  await apiRequestOrThrow(cluster, `POST ${REQUESTS}`, { body });
  return name;
}

/** Creates and approves a CertificateSigningRequest, and waits until it is signed or has failed. */
async function signed(cluster: Connection, request: string, spec: object): Promise<SigningStatus> {
  const path = `${REQUESTS}/${await create(cluster, request, spec)}`;
  const conditions = [{ type: "Approved", status: "True", reason: "Test", message: "approved by a test" }];
  const contentType = "application/merge-patch+json";
  await apiRequestOrThrow(cluster, `PATCH ${path}/approval`, { body: { status: { conditions } }, contentType });
  const decided = async () => {
    const status = (await apiRequestOrThrow(cluster, `GET ${path}`)).status as SigningStatus;
    const isFailed = status.conditions?.some(({ type }) => type === "Failed");
    return status.certificate !== undefined || isFailed ? status : undefined;
  };
  return waitFor("the certificate or a failure", decided, PATIENCE);
}

/** Creates a key and a certificate signing request (RFC 2986) in base64. */
function createRequest(commonName: string, organizations: string[], names: string[] = []) {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const alternatives = sequence(...names.map((name) => der(0x82, Buffer.from(name))));
  const extension = sequence(objectIdentifier("2.5.29.17"), der(0x04, alternatives));
  const asked = sequence(objectIdentifier("1.2.840.113549.1.9.14"), der(0x31, sequence(extension)));
  const info = sequence(
    integer(0),
    subjectOf({ commonName, organizations }),
    publicKey.export({ type: "spki", format: "der" }),
    explicit(0, names.length === 0 ? Buffer.alloc(0) : asked),
  );
  const algorithm = sequence(objectIdentifier("1.2.840.10045.4.3.2"));
  const whole = sequence(info, algorithm, bitString(sign("sha256", info, privateKey)));
  const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${whole.toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`;
  return {
    request: Buffer.from(pem).toString("base64"),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}
