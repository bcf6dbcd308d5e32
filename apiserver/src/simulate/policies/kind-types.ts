import { typeOfSchema, type CheckedType } from "@gen-operator/schema/cel";
import type { Schema } from "@gen-operator/schema";
import type { Requests } from "../feed/api-client.js";

/** What a kind is called. */
export interface KindName {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

type Schemas = Record<string, Schema & { "x-kubernetes-group-version-kind"?: KindName[] }>;

const REF_PREFIX = "#/components/schemas/";

/** Reads the types of kinds from the OpenAPI documents of a server; a document is read again when it has changed. */
export class KindTypes {
  readonly #documents = new Map<string, { url: string; schemas: Promise<Schemas> }>();

  /** Returns the type of a kind under a name; undefined if the server does not describe the kind. */
  async typeOf(client: Requests, { group, version, kind }: KindName, name: string): Promise<CheckedType | undefined> {
    const path = group === "" ? `api/${version}` : `apis/${group}/${version}`;
    const schemas = await this.#schemasAt(client, path);
    const schema = Object.values(schemas).find((one) =>
      one["x-kubernetes-group-version-kind"]?.some(
        (each) => each.kind === kind && each.group === group && each.version === version,
      ),
    );
    const definitions = Object.fromEntries(Object.entries(schemas).map(([key, one]) => [REF_PREFIX + key, one]));
    return schema === undefined ? undefined : typeOfSchema(schema, definitions, { isRoot: true, name });
  }

  async #schemasAt(client: Requests, path: string): Promise<Schemas> {
    const { paths } = await client.request<Index>({ method: "GET", path: "/openapi/v3" });
    const url = paths[path]?.serverRelativeURL;
    if (url === undefined) return {};
    const known = this.#documents.get(path);
    if (known?.url === url) return known.schemas;
    const read = client.request<Document>({ method: "GET", path: url });
    const schemas = read.then(({ components }) => components?.schemas ?? {});
    this.#documents.set(path, { url, schemas });
    schemas.catch(() => this.#documents.delete(path));
    return schemas;
  }
}

interface Index {
  paths: Record<string, { serverRelativeURL: string }>;
}

interface Document {
  components?: { schemas?: Schemas };
}
