// Files of one volume that stand in each other's way.
import { quote } from "../../errors/go-format.js";
import { type JsonObject, memberOf, objectAt, stringAt } from "../../json.js";
import { objectsAt } from "../../builtin/read-path.js";

interface PlacedFile {
  readonly path: string;
  /** What it comes from, where a volume has several sources. */
  readonly source: string;
}

/** Warns of files in the volumes of a pod spec whose paths overlap. */
export function pathWarnings(spec: JsonObject): string[] {
  return objectsAt(spec, "volumes").flatMap((volume) => {
    const name = quote(stringAt(volume, "name") ?? "");
    const told = (from: string, files: PlacedFile[], before: PlacedFile[] = []) =>
      overlapsOf(files, before).map((overlap) => `volume ${name} (${from}): overlapping paths: ${overlap}`);
    const [map, secret] = [objectAt(volume, "configMap"), objectAt(volume, "secret")];
    const sources = objectsAt(volume, "projected.sources");
    return [
      ...(map === undefined ? [] : told(`ConfigMap ${quote(stringAt(map, "name") ?? "")}`, itemsOf(map, ""))),
      ...(secret === undefined
        ? []
        : told(`Secret ${quote(stringAt(secret, "secretName") ?? "")}`, itemsOf(secret, ""))),
      ...told("DownwardAPI", itemsOf(objectAt(volume, "downwardAPI"), "")),
      ...sources.flatMap((source, index) =>
        Object.keys(source).length === 0
          ? [`volume ${name} (Projected) has no sources provided`]
          : told("Projected", filesOf(source), sources.slice(0, index).flatMap(filesOf)),
      ),
    ];
  });
}

function itemsOf(source: JsonObject | undefined, shown: string): PlacedFile[] {
  return objectsAt(source ?? {}, "items").map((item) => ({ path: stringAt(item, "path") ?? "", source: shown }));
}

function filesOf(projection: JsonObject): PlacedFile[] {
  const [map, secret, token] = ["configMap", "secret", "serviceAccountToken"].map((key) => objectAt(projection, key));
  const [bundle, certificate] = ["clusterTrustBundle", "podCertificate"].map((key) => objectAt(projection, key));
  const named = (kind: string, source: JsonObject | undefined) => `${kind} ${quote(stringAt(source, "name") ?? "")}`;
  const bundleName = stringAt(bundle, "name") ?? stringAt(bundle, "signerName") ?? "";
  const file = (of: JsonObject | undefined, key: string, source: string): PlacedFile[] =>
    memberOf(of, key) === undefined ? [] : [{ path: stringAt(of, key) ?? "", source }];
  return [
    ...itemsOf(map, named("ConfigMap", map)),
    ...itemsOf(secret, named("Secret", secret)),
    ...itemsOf(objectAt(projection, "downwardAPI"), "DownwardAPI"),
    ...file(token, "path", "ServiceAccountToken"),
    ...file(bundle, "path", `ClusterTrustBundle ${quote(bundleName)}`),
    ...file(certificate, "certificateChainPath", "PodCertificate chain"),
    ...file(certificate, "keyPath", "PodCertificate key"),
    ...file(certificate, "credentialBundlePath", "PodCertificate credential bundle"),
  ];
}

function overlapsOf(files: PlacedFile[], before: PlacedFile[]): string[] {
  const placed = [...before, ...files].map(({ path, source }) => ({ path: path.replace(/\/+$/, ""), source }));
  return placed.flatMap((file, index) =>
    placed
      .slice(0, index < before.length ? 0 : index)
      .filter((other) => file.path !== "" && other.path !== "" && standInTheWay(file.path, other.path))
      .map((other) => `${shown(file)} with ${shown(other)}`),
  );
}

function standInTheWay(one: string, other: string): boolean {
  return `${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`);
}

function shown({ path, source }: PlacedFile): string {
  return source === "" ? quote(path) : `${quote(path)} (${source})`;
}
