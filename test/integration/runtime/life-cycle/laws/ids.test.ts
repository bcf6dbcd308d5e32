// What anyone can write proves nothing: an id that a tenant writes where the operator keeps the ids of external resources gives no right to the
// resource of another tenant.
import { STATE_LABEL } from "#runtime/dependents/object-state.js";
import { attempt } from "../model/world.js";
import fc from "../../../../support/fast-check.js";
import { EventualService } from "./eventual-service.js";
import { resourceOf, type Found } from "./external-pages.js";
import { ConfigMap, Page, Secret, textController, type DataObject } from "./kinds.js";
import { declareLaw, isBroken, type Scenario } from "./law.js";
import { scenesOf, type Scene } from "./scene.js";

type Kept = Exclude<Found["state"], "none">;

interface Case extends Found {
  readonly state: Kept;
  /** Whether the tenant copies all that is kept of the page of the other tenant, in place of the id alone. */
  readonly isCopied?: boolean;
  readonly commands: readonly Command[];
}

/** A tenant with a page, and the page of another tenant in another namespace. */
interface World {
  readonly scene: Scene;
  readonly case: Case;
  readonly service: EventualService;
  readonly other: string;
  /** The id of the resource of the other tenant. */
  readonly id: string;
  edits: number;
}

const refOf = ({ namespace }: Scene) => ({ name: "one", namespace });

// Where the ids of a page are kept.
async function keeperOf({ scene, case: { state } }: World, namespace: string): Promise<DataObject | undefined> {
  const kind = state === "secret" ? Secret : ConfigMap;
  const found = await scene.client.list(kind, { namespace, labelSelector: STATE_LABEL });
  if (found.length > 1) throw new Error(`${found.length} objects keep the ids of the page in ${namespace}`);
  return found[0];
}

async function forge(world: World): Promise<void> {
  const { scene, id, other } = world;
  const { state, isBulk, isCopied } = world.case;
  const page = await scene.get(Page, "one");
  if (page === undefined) return;
  if (state === "status") {
    const theirs = (await scene.get(Page, "one", other))?.status?.text;
    const status = { text: isCopied ? theirs : id };
    return attempt(() => scene.client.mergePatch(Page, { ...refOf(scene), subresource: "status" }, { status }));
  }
  const kind = state === "secret" ? Secret : ConfigMap;
  const theirs = await keeperOf(world, other);
  const plain = { [isBulk ? "item.z" : "id"]: state === "secret" ? Buffer.from(id).toString("base64") : id };
  const data = isCopied ? theirs!.data! : plain;
  const own = await keeperOf(world, scene.namespace);
  if (own !== undefined) return attempt(() => scene.client.mergePatch(kind, own.metadata, { data }).then(() => {}));
  // Its name is a hash of public facts, and both pages have one name.
  const { name, labels = {}, annotations = {} } = theirs!.metadata;
  const metadata = {
    ...{ name, namespace: scene.namespace, labels, ...(isCopied ? { annotations } : {}) },
    ownerReferences: [
      { apiVersion: "example.com/v1", kind: "Page", name: "one", uid: page.metadata.uid!, controller: true },
    ],
  };
  await attempt(() => scene.client.create(kind, { metadata, data }));
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
  const other = await scene.createNamespace(`${scene.id}-other`);
  const namespaces = [scene.namespace, other];
  await scene.start(textController(scene, { dependents: [resourceOf(service, one)], namespaces }));
  await scene.client.create(Page, { metadata: { name: "one", namespace: other }, spec: { text: "theirs", more: "z" } });
  if (!(await scene.until("the other tenant has a resource", () => service.resources.length === 1))) return;
  await scene.quiet();
  const { id } = service.resources[0]!;
  const world = { scene, case: one, service, other, id, edits: 0 };
  for (const command of one.commands) {
    await COMMANDS[command](world);
    await scene.quiet();
    const changes = service.changes.filter((change) => change.endsWith(` ${id}`) && !change.startsWith("create"));
    scene.problems.push(...changes.map((change) => `${change} of another tenant, after "${command}"`));
    if (scene.problems.length > 0) return;
  }
  // What the tenant wrote is where the operator keeps ids, or nothing was shown.
  await keeperOf(world, scene.namespace);
}

const sequences: { readonly [when: string]: readonly Command[] } = {
  "while the operator runs": ["create page", "the tenant writes the id", "edit page", "delete page"],
  "while the operator is stopped": [
    ...[
      "create page",
      "stop the operator",
      "the tenant writes the id",
      "start the operator",
      "edit page",
      "delete page",
    ],
  ] as Command[],
  "before the operator sees the primary": [
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
    [false, true].flatMap((isCopied) =>
      KEPT.map((kept) => {
        const facts = [kept.isBulk ? "an item" : "single", kept.state, isCopied ? "copied" : "the id alone"];
        const title = `gives no access to the resource of another tenant ${when} (${facts.join(", ")})`;
        return { title, case: { ...kept, isCopied, commands } };
      }),
    ),
  )
  .map((scenario, index): Scenario<Case> => ({ ...scenario, seed: index + 1 }));

const cases: fc.Arbitrary<Case> = fc
  .record({
    kept: fc.constantFrom(...KEPT),
    isCopied: fc.boolean(),
    commands: fc.array(fc.constantFrom(...(Object.keys(COMMANDS) as Command[])), { minLength: 3, maxLength: 8 }),
  })
  .map(({ kept, isCopied, commands }) => ({ ...kept, isCopied, commands: ["create page", ...commands] }));

declareLaw<Case>({
  name: "ids",
  title: "forged external id",
  open: scenesOf(),
  scenarios,
  play,
  explored: {
    title: "gives no access to the resource of another tenant for random sequences of writes and restarts",
    cases: isBroken("ids") ? undefined : cases,
  },
});
