import { createPublicKey, verify } from "node:crypto";
import { ALTERNATIVE_NAMES } from "./authority.js";
import { type Element, objectIdentifier, readElements } from "./der.js";

/** Contents of a certificate signing request, as DER. */
export interface SigningRequest {
  subject: Buffer;
  publicKey: Buffer;
  /** Value of the subjectAltName extension. */
  alternativeNames?: Buffer;
}

const PEM = /-----BEGIN CERTIFICATE REQUEST-----([^-]*)-----END CERTIFICATE REQUEST-----/;
const EXTENSION_REQUEST = objectIdentifier("1.2.840.113549.1.9.14");
const ORGANIZATION = objectIdentifier("2.5.4.10");
const NAMES_EXTENSION = objectIdentifier(ALTERNATIVE_NAMES);
// Signature algorithms by OID with their digests: ECDSA and RSA; Ed25519 has a built-in digest.
const DIGESTS: readonly [id: string, digest: string | null][] = [
  ["1.2.840.10045.4.3.2", "sha256"],
  ["1.2.840.10045.4.3.3", "sha384"],
  ["1.2.840.10045.4.3.4", "sha512"],
  ["1.2.840.113549.1.1.11", "sha256"],
  ["1.2.840.113549.1.1.12", "sha384"],
  ["1.2.840.113549.1.1.13", "sha512"],
  ["1.3.101.112", null],
];

/**
 * Parses a certificate signing request in PEM (RFC 2986).
 *
 * @throws if it is invalid, or not signed with its own key.
 */
export function parseSigningRequest(text: string): SigningRequest {
  const base64 = PEM.exec(text)?.[1];
  if (base64 === undefined) throw new Error("PEM block type must be CERTIFICATE REQUEST");
  const [whole] = readElements(Buffer.from(base64, "base64"));
  const [info, algorithm, signature] = readElements(contentOf(whole));
  const [, subject, publicKey, ...attributes] = readElements(contentOf(info));
  if (info === undefined || subject === undefined || publicKey === undefined)
    throw new Error("malformed certificate request");
  if (!isSigned(info.raw, { algorithm, signature, publicKey: publicKey.raw }))
    throw new Error("unable to verify certificate request signature");
  const names = alternativeNamesOf(attributes);
  return {
    subject: subject.raw,
    publicKey: publicKey.raw,
    ...(names === undefined ? {} : { alternativeNames: names }),
  };
}

function isSigned(
  content: Buffer,
  given: { algorithm: Element | undefined; signature: Element | undefined; publicKey: Buffer },
): boolean {
  const id = readElements(contentOf(given.algorithm))[0]?.raw;
  const known = DIGESTS.find(([name]) => id?.equals(objectIdentifier(name)));
  if (known === undefined) throw new Error("unsupported signature algorithm of certificate request");
  const key = createPublicKey({ key: given.publicKey, type: "spki", format: "der" });
  // The content of a BIT STRING starts with the number of unused bits.
  return verify(known[1], content, key, contentOf(given.signature).subarray(1));
}

// Requested extensions are in one of the attributes.
function alternativeNamesOf(attributes: Element[]): Buffer | undefined {
  const sets = attributes.flatMap(({ content }) => readElements(content));
  for (const attribute of sets) {
    const [id, values] = readElements(attribute.content);
    if (!id?.raw.equals(EXTENSION_REQUEST)) continue;
    const extensions = readElements(contentOf(readElements(contentOf(values))[0]));
    for (const extension of extensions) {
      const [name, ...rest] = readElements(extension.content);
      if (name?.raw.equals(NAMES_EXTENSION)) return rest.at(-1)?.content;
    }
  }
  return undefined;
}

function contentOf(element: Element | undefined): Buffer {
  if (element === undefined) throw new Error("malformed certificate request");
  return element.content;
}

/** Lists the organizations of a subject, which are the groups of a client. */
export function organizationsOf({ subject }: SigningRequest): string[] {
  const sets = readElements(readElements(subject)[0]?.content ?? subject);
  return sets
    .flatMap(({ content }) => readElements(content))
    .map(({ content }) => readElements(content))
    .filter(([id]) => id?.raw.equals(ORGANIZATION))
    .map(([, text]) => contentOf(text).toString());
}
