import { digestOf } from "../../parts/digest.js";
import type { PartMemory } from "../../parts/part-memory.js";
import type { YamlDocument, YamlPath } from "./yaml-document.js";

/** What a document is recalled with. */
export interface RecallOptions {
  /** Stands for the text of the file, and for the document in it. */
  readonly key: string;
  readonly parts: PartMemory;
  /** Parses the file: for places that nobody has asked for in an earlier run. */
  read(): YamlDocument;
}

/** Returns a document whose places are recalled; the file is parsed only for a place that is new. */
export function recallDocument(
  { file, value }: Pick<YamlDocument, "file" | "value">,
  { key, parts, read }: RecallOptions,
): YamlDocument {
  const place = <Found>(what: string, path: YamlPath, find: (document: YamlDocument) => Found): Found =>
    parts.recall("place", digestOf(key, what, JSON.stringify(path)), () => find(read()));
  return Object.freeze({
    file,
    value,
    valueAt: (path: YamlPath) => place("value", path, (document) => document.valueAt(path)),
    keyAt: (path: YamlPath) => place("key", path, (document) => document.keyAt(path)),
    plainTextAt: (path: YamlPath) => read().plainTextAt(path),
    characterAt: (path: YamlPath, offset: number) =>
      place(`character ${offset}`, path, (document) => document.characterAt(path, offset)),
  });
}
