// node test/dist/support/kinds/record-live-objects.js records fixtures/live-objects on a real kube-apiserver, which must be built first
// (control-plane/README.md). A dry run determines whether an apply would change an object.
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "#apiserver/json.js";
import type { KubernetesObject, ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { objectPath } from "#runtime/client/api-client.js";
import { apiRequestOrThrow, type Connection } from "../api/api-request.js";
import { startControlPlane } from "../machine/control-plane.js";
import { waitFor } from "#apiserver/wait-for.js";
import { builtinDefinition, customDefinition } from "./kind-definitions.js";
import {
  changed,
  FIELD_MANAGER,
  readLiveObjectCases,
  widgetCrd,
  type LiveObjectCase,
  type RecordedKind,
  type RecordedVerdict,
} from "./live-objects.js";
import { repositoryRoot } from "../repository.js";

const folder = join(repositoryRoot, "fixtures/live-objects");
const WIDGET = "Widget";

interface Apply {
  readonly object: JsonObject;
  readonly manager: string;
  readonly isDryRun?: boolean;
}

class Recorder {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async installWidgets(): Promise<void> {
    const path = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    await apiRequestOrThrow(this.#connection, path, { body: widgetCrd });
    await waitFor("widgets are served", async () => {
      const list = "GET /apis/example.com/v1/widgets";
      return (await apiRequestOrThrow(this.#connection, list).catch(() => undefined)) !== undefined;
    });
  }

  async record({ name, desired, questions }: LiveObjectCase): Promise<void> {
    const { apiVersion, kind } = desired;
    const isCustom = kind === WIDGET;
    const definition = isCustom ? customDefinition(widgetCrd) : builtinDefinition(apiVersion, kind);
    const target = join(folder, name);
    await rm(target, { recursive: true, force: true });
    await mkdir(target);
    const write = (file: string, value: unknown) =>
      writeFile(join(target, file), `${JSON.stringify(value, null, 2)}\n`);
    const verdicts: RecordedVerdict[] = [];
    for (const { title, change, foreign } of questions) {
      const path = this.#path(definition, `${name}-${verdicts.length}`);
      const at = (object: JsonObject) => renamed(object, `${name}-${verdicts.length}`);
      await this.#apply(path, { object: at(desired), manager: FIELD_MANAGER });
      if (foreign !== undefined) await this.#interfere(path, foreign, at);
      const live = await apiRequestOrThrow<JsonObject>(this.#connection, `GET ${path}`);
      const wanted = at(changed(desired, change));
      const answer = await this.#apply(path, { object: wanted, manager: FIELD_MANAGER, isDryRun: true });
      const matches = answer !== undefined && isDeepStrictEqual(withoutTimes(answer), withoutTimes(live));
      const file = foreign === undefined ? undefined : `live-${verdicts.length}.json`;
      if (verdicts.length === 0 || file !== undefined) await write(file ?? "live.json", renamed(live, name));
      verdicts.push({
        title,
        ...(change === undefined ? {} : { change }),
        ...(file === undefined ? {} : { live: file }),
        matches,
      });
    }
    const recordedKind: RecordedKind = { apiVersion, kind, ...(isCustom ? { crd: "widgets.example.com.yaml" } : {}) };
    await write("kind.json", recordedKind);
    await write("desired.json", renamed(desired, name));
    await write("verdict.json", verdicts);
  }

  #path(definition: ResourceDefinition, name: string): string {
    return objectPath(definition, { name, namespace: "default" });
  }

  /** Returns the response; undefined if the server rejects the apply, which happens only for changes of immutable fields. */
  async #apply(path: string, { object, manager, isDryRun }: Apply): Promise<JsonObject | undefined> {
    const query = `?fieldManager=${manager}&force=true${isDryRun === true ? "&dryRun=All" : ""}`;
    const options = { body: object, contentType: "application/apply-patch+yaml" };
    try {
      return await apiRequestOrThrow<JsonObject>(this.#connection, `PATCH ${path}${query}`, options);
    } catch (error) {
      if (isDryRun === true && String(error).includes(": 422 ")) return undefined;
      throw error;
    }
  }

  async #interfere(
    path: string,
    { manager, object }: NonNullable<LiveObjectCase["questions"][number]["foreign"]>,
    at: (object: JsonObject) => JsonObject,
  ): Promise<void> {
    if (manager === undefined) {
      const options = { body: object, contentType: "application/merge-patch+json" };
      await apiRequestOrThrow(this.#connection, `PATCH ${path}?fieldManager=kubectl-edit`, options);
      return;
    }
    const { apiVersion, kind } = await apiRequestOrThrow(this.#connection, `GET ${path}`);
    await this.#apply(path, { object: at({ apiVersion, kind, ...object }), manager });
  }
}

function renamed(object: JsonObject, name: string): JsonObject {
  return { ...object, metadata: { ...(object["metadata"] as JsonObject | undefined), name } };
}

function withoutTimes(object: JsonObject): unknown {
  const { managedFields = [], ...metadata } = (object as unknown as KubernetesObject).metadata as unknown as JsonObject;
  const entries = (managedFields as JsonObject[]).map(({ time: _time, ...entry }) => entry);
  return { ...object, metadata: { ...metadata, managedFields: entries } };
}

await using plane = await startControlPlane();
const recorder = new Recorder(plane);
await recorder.installWidgets();
for (const each of readLiveObjectCases()) await recorder.record(each);
