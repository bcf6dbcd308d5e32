import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import {
  bitString,
  explicit,
  integer,
  nameAttribute,
  objectIdentifier,
  octetString,
  der,
  readElements,
  sequence,
  TRUE,
  utcTime,
} from "./der.js";
import { usageExtensions } from "./usages.js";

/** A certificate with its private key, both in PEM. */
export interface KeyedCertificate {
  certificate: string;
  key: string;
}

/** What a certificate says, besides who issues it; names, keys and extensions are DER. */
export interface CertificateContent {
  subject: Buffer;
  publicKey: Buffer;
  usages: readonly string[];
  /** The value of the extension subjectAltName. */
  alternativeNames?: Buffer | undefined;
  notBefore: Date;
  notAfter: Date;
}

/** The object identifier of the extension subjectAltName. */
export const ALTERNATIVE_NAMES = "2.5.29.17";

const ECDSA_WITH_SHA256 = sequence(objectIdentifier("1.2.840.10045.4.3.2"));
/** From the first to the last day that UTCTime can express, give or take: a test may set the clock to any date. */
const VALIDITY = { notBefore: new Date(0), notAfter: new Date(Date.UTC(2049, 11, 31)) };

interface Issuer {
  /** DER. */
  name: Buffer;
  /** PEM. */
  key: string;
  id: Buffer;
  expires: Date;
}

/** Creates an authority that signs itself. */
export function createAuthority(commonName: string): KeyedCertificate {
  const { publicKey, key } = createKey();
  const name = subjectOf({ commonName });
  const issuer: Issuer = { name, key, id: keyIdOf(publicKey), expires: VALIDITY.notAfter };
  const content = { subject: name, publicKey, usages: [], ...VALIDITY };
  const extensions = [
    extension("2.5.29.19", sequence(TRUE), { critical: true }), // basicConstraints: CA
    extension("2.5.29.15", bitString(Buffer.from([0b1000_0110]), 1), { critical: true }), // keyUsage: sign, certSign, crlSign
  ];
  return { certificate: issue(issuer, content, extensions), key };
}

/** Signs a certificate, in PEM; it ends with its authority at the latest. */
export function signCertificate(authority: KeyedCertificate, content: CertificateContent): string {
  const issuer = issuerOf(authority);
  const notAfter = content.notAfter < issuer.expires ? content.notAfter : issuer.expires;
  return issue(issuer, { ...content, notAfter }, [
    ...usageExtensions(content.usages).map(({ id, value, critical }) => extension(id, value, { critical })),
    extension("2.5.29.19", sequence(), { critical: true }), // basicConstraints: no CA
    ...(content.alternativeNames === undefined ? [] : [extension(ALTERNATIVE_NAMES, content.alternativeNames)]),
  ]);
}

/** Creates a key, and a certificate for it. */
export function issueCertificate(
  authority: KeyedCertificate,
  content: Pick<CertificateContent, "subject" | "usages" | "alternativeNames">,
): KeyedCertificate {
  const { publicKey, key } = createKey();
  return { certificate: signCertificate(authority, { ...content, publicKey, ...VALIDITY }), key };
}

/** Encodes the name of a subject; a client is the user and in the groups that it names. */
export function subjectOf({
  commonName,
  organizations = [],
}: {
  commonName: string;
  organizations?: readonly string[];
}): Buffer {
  return sequence(
    ...organizations.map((organization) => nameAttribute("2.5.4.10", organization)),
    nameAttribute("2.5.4.3", commonName),
  );
}

function createKey(): { publicKey: Buffer; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    publicKey: publicKey.export({ type: "spki", format: "der" }),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

function issuerOf({ certificate, key }: KeyedCertificate): Issuer {
  const { raw, validTo } = new X509Certificate(certificate);
  const [toBeSigned] = readElements(readElements(raw)[0]?.content ?? raw);
  // RFC 5280, section 4.1: version, serial number, signature, issuer, validity, subject.
  const subject = readElements(toBeSigned?.content ?? raw)[5]?.raw ?? sequence();
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" });
  return { name: subject, key, id: keyIdOf(publicKey), expires: new Date(validTo) };
}

// RFC 5280, section 4.1.
function issue(issuer: Issuer, content: CertificateContent, extensions: Buffer[]): string {
  const toBeSigned = sequence(
    explicit(0, integer(2)), // version 3
    integer(serialNumber()),
    ECDSA_WITH_SHA256,
    issuer.name,
    sequence(utcTime(content.notBefore), utcTime(content.notAfter)),
    content.subject,
    content.publicKey,
    explicit(
      3,
      sequence(
        ...extensions,
        extension("2.5.29.14", octetString(keyIdOf(content.publicKey))), // subjectKeyIdentifier
        extension("2.5.29.35", sequence(der(0x80, issuer.id))), // authorityKeyIdentifier
      ),
    ),
  );
  const signature = sign("sha256", toBeSigned, createPrivateKey(issuer.key));
  return pemOf(sequence(toBeSigned, ECDSA_WITH_SHA256, bitString(signature)));
}

function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes;
}

function extension(id: string, value: Buffer, { critical }: { critical: boolean } = { critical: false }): Buffer {
  return sequence(objectIdentifier(id), ...(critical ? [TRUE] : []), octetString(value));
}

function keyIdOf(publicKey: Buffer): Buffer {
  return createHash("sha1").update(publicKey).digest();
}

function pemOf(certificate: Buffer): string {
  const lines = certificate.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}
