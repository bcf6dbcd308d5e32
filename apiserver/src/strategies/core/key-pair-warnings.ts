// Whether the certificate and the key of a Secret belong together, in the words of Go's TLS library.
import { X509Certificate, createPrivateKey } from "node:crypto";
import { type JsonObject, objectAt } from "../../json.js";
import { textAt } from "../../builtin/read-path.js";

const BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g;

/** Names what is wrong with the key pair of a Secret for TLS. */
export function keyPairWarnings(secret: JsonObject): string[] {
  if (textAt(secret, "type") !== "kubernetes.io/tls") return [];
  const data = objectAt(secret, "data") ?? {};
  const [certificate, key] = ["tls.crt", "tls.key"].map((name) =>
    Buffer.from(typeof data[name] === "string" ? data[name] : "", "base64").toString(),
  ) as [string, string];
  const problem = certificateProblem(certificate) ?? keyProblem(key) ?? pairProblem(certificate, key);
  return problem === undefined ? [] : [`tls: ${problem}`];
}

function typesOf(pem: string): string[] {
  return [...pem.matchAll(BLOCK)].map(([, type]) => type as string);
}

function certificateProblem(pem: string): string | undefined {
  const types = typesOf(pem);
  if (types.includes("CERTIFICATE")) return undefined;
  if (types.length === 0) return "failed to find any PEM data in certificate input";
  if (types.length === 1 && isKey(types[0] as string))
    return "failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched";
  return `failed to find "CERTIFICATE" PEM block in certificate input ${skipped(types)}`;
}

function keyProblem(pem: string): string | undefined {
  const types = typesOf(pem);
  if (types.some(isKey)) return undefined;
  if (types.length === 0) return "failed to find any PEM data in key input";
  if (types.length === 1 && types[0] === "CERTIFICATE")
    return "found a certificate rather than a key in the PEM for the private key";
  return `failed to find PEM block with type ending in "PRIVATE KEY" in key input ${skipped(types)}`;
}

const isKey = (type: string): boolean => type.endsWith("PRIVATE KEY");
const skipped = (types: string[]): string => `after skipping PEM blocks of the following types: [${types.join(" ")}]`;

function pairProblem(certificate: string, key: string): string | undefined {
  try {
    const isPair = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
    return isPair ? undefined : "private key does not match public key";
  } catch {
    return "failed to parse private key";
  }
}
