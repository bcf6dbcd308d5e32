// What all generated manifests have in common.
import { isScalar, visit, type Document } from "yaml";
import { GENERATED_HEADER, type OutputFile } from "../files/output-file.js";

/** Returns the namespace of an operator. */
export function namespaceOf(name: string): string {
  return `${name}-system`;
}

/** Returns the labels that all objects of an operator have. */
export function labelsOf(name: string): { readonly [label: string]: string } {
  return { "app.kubernetes.io/name": name };
}

/** Returns a generated file of YAML documents. */
export function fileOf(
  path: string,
  { intro, documents }: { readonly intro?: string; readonly documents: readonly Document[] },
): OutputFile {
  const header = [GENERATED_HEADER.slice("// ".length), ...(intro === undefined ? [] : ["", ...intro.split("\n")])];
  const comment = header.map((line) => `#${line === "" ? "" : ` ${line}`}\n`).join("");
  const texts = documents.map((document) => document.toString({ lineWidth: 0, flowCollectionPadding: false }));
  return { path, owner: "generator", content: `${comment}\n${texts.join("---\n")}` };
}

/** Prints lists of words in one line each. */
export function withInlineLists(document: Document): Document {
  visit(document, {
    Seq: (_key, list) => {
      if (list.items.every(isScalar)) list.flow = true;
    },
  });
  return document;
}
