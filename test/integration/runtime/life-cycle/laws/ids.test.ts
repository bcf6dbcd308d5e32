// What anyone can write proves nothing: an id that a tenant writes where the operator keeps the ids of external resources gives no right to the
// resource of another tenant.
import { createHash } from "node:crypto";
import { STATE_LABEL } from "#runtime/workflow/dependents/object-state.js";
import { attempt } from "../model/world.js";
import fc from "../../../../support/fast-check.js";
import { EventualService } from "./eventual-service.js";
import { resourceOf, type Found } from "./external-pages.js";
import { ConfigMap, Page, Secret, textController } from "./kinds.js";
import { declareLaw, isBroken, type Scenario } from "./law.js";
import { scenesOf, type Scene } from "./scene.js";

type Kept = Exclude<Found["state"], "none">;

interface Case extends Found {
  readonly state: Kept;
  readonly commands: readonly Command[];
}

/** A tenant with a page, and a resource of another tenant. */
interface World {
  readonly scene: Scene;
  readonly case: Case;
  readonly service: EventualService;
  /** The id of the resource that is not the tenant's. */
  readonly id: string;
  edits: number;
}

const refOf = ({ namespace }: Scene) => ({ name: "one", namespace });

async function forge({ scene, case: { state, isBulk }, id }: World): Promise<void> {
  const page = await scene.get(Page, "one");
  if (page === undefined) return;
  if (state === "status")
    return attempt(() =>
      scene.client.mergePatch(Page, { ...refOf(scene), subresource: "status" }, { status: { text: id } }),
    );
  const kind = state === "secret" ? Secret : ConfigMap;
  const data = { [isBulk ? "item.z" : "id"]: state === "secret" ? Buffer.from(id).toString("base64") : id };
  // A name of public facts: anyone can compute it.
  const facts = [scene.id, "Page", "example.com", "one", "resource"];
  const hash = createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 8);
  const metadata = {
    name: `one-resource-${hash}-state`,
    namespace: scene.namespace,
    labels: { [STATE_LABEL]: scene.id, "gen-operator.dev/controller": scene.id },
    ownerReferences: [
      { apiVersion: "example.com/v1", kind: "Page", name: "one", uid: page.metadata.uid!, controller: true },
    ],
  };
  const isThere = (await scene.get(kind, metadata.name)) !== undefined;
  await attempt(async () =>
    isThere ? scene.client.mergePatch(kind, metadata, { data }) : scene.client.create(kind, { metadata, data }),
  );
}

const COMMANDS = {
  "create page": ({ scene }: World) =>
    attempt(() => scene.client.create(Page, { metadata: refOf(scene), spec: { text: "first", more: "ab" } })),
  "edit page": (world: World) =>
    attempt(() => world.scene.client.mergePatch(Page, refOf(world.scene), { spec: { text: `text-${++world.edits}` } })),
  "delete page": async ({ scene }: World) => {
    if ((await scene.get(Page, "one")) !== undefined) await attempt(() => scene.client.delete(Page, refOf(scene)));
  },
  "the tenant writes the id": forge,
  "stop the operator": ({ scene }: World) => scene.stop(),
  "start the operator": ({ scene }: World) => scene.start(),
} as const;
type Command = keyof typeof COMMANDS;

async function play(scene: Scene, one: Case): Promise<void> {
  const service = new EventualService();
  const { id } = service.create({ owner: "another/page", item: "", value: "theirs" });
  const world = { scene, case: one, service, id, edits: 0 };
  await scene.start(textController(scene, { dependents: [resourceOf(service, one)] }));
  for (const command of one.commands) {
    await COMMANDS[command](world);
    await scene.quiet();
    const changes = service.changes.filter((change) => change.endsWith(` ${id}`) && !change.startsWith("create"));
    scene.problems.push(...changes.map((change) => `${change} of another tenant, after "${command}"`));
    if (scene.problems.length > 0) return;
  }
}

const sequences: { readonly [when: string]: readonly Command[] } = {
  "while the operator runs": ["create page", "the tenant writes the id", "edit page", "delete page"],
  "while it is stopped": [
    ...[
      "create page",
      "stop the operator",
      "the tenant writes the id",
      "start the operator",
      "edit page",
      "delete page",
    ],
  ] as Command[],
  "before it sees the page": [
    ...[
      "stop the operator",
      "create page",
      "the tenant writes the id",
      "start the operator",
      "edit page",
      "delete page",
    ],
  ] as Command[],
};
const KEPT: readonly (Found & { state: Kept })[] = [
  { isBulk: false, state: "configMap" },
  { isBulk: false, state: "secret" },
  { isBulk: false, state: "status" },
  { isBulk: true, state: "configMap" },
  { isBulk: true, state: "secret" },
];
const scenarios = Object.entries(sequences)
  .flatMap(([when, commands]) =>
    KEPT.map((kept) => {
      const title = `gives no right to the resource of another tenant (${kept.isBulk ? "an item" : "single"}, ${kept.state}, ${when})`;
      return { title, case: { ...kept, commands } };
    }),
  )
  .map((scenario, index): Scenario<Case> => ({ ...scenario, seed: index + 1 }));

const cases: fc.Arbitrary<Case> = fc
  .record({
    kept: fc.constantFrom(...KEPT),
    commands: fc.array(fc.constantFrom(...(Object.keys(COMMANDS) as Command[])), { minLength: 3, maxLength: 8 }),
  })
  .map(({ kept, commands }) => ({ ...kept, commands: ["create page", ...commands] }));

declareLaw<Case>({
  name: "ids",
  title: "an id that a tenant writes",
  open: scenesOf(),
  scenarios,
  play,
  explored: {
    title: "gives no right to the resource of another tenant, whenever it is written",
    cases: isBroken("ids") ? undefined : cases,
  },
});
