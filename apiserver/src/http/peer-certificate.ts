import type { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { ClientCertificate } from "../identity/client-certificate.js";

// It stays the same for all requests of a connection.
const known = new WeakMap<Socket, ClientCertificate>();

/** Returns the certificate that the client of a connection has shown. */
export function certificateOf(socket: Socket): ClientCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const before = known.get(socket);
  if (before !== undefined) return before;
  const peer = socket.getPeerX509Certificate();
  if (peer === undefined) return undefined;
  const certificate = readCertificate(peer, socket.authorized);
  known.set(socket, certificate);
  return certificate;
}

function readCertificate(peer: X509Certificate, isTrusted: boolean): ClientCertificate {
  const { CN, O } = peer.toLegacyObject().subject as { CN?: string | string[]; O?: string | string[] };
  return {
    isTrusted,
    commonName: [CN ?? ""].flat().at(-1) ?? "",
    organizations: [O ?? []].flat(),
    validFrom: new Date(peer.validFrom),
    validTo: new Date(peer.validTo),
    fingerprint: peer.fingerprint256.replaceAll(":", "").toLowerCase(),
  };
}
