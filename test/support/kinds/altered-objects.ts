// Objects that differ from a valid one in one place, whatever the schema says of it: what a server says of each is for the server to say.

/** An object that was changed in one place. */
export interface AlteredObject {
  /** What was changed, and where: `spec.replicas is -1`. */
  readonly change: string;
  readonly object: object;
}

type Json = Record<string, unknown>;

const VALUES: readonly unknown[] = [
  ...[null, "", " ", "x", "X_y", "a/b", "-", "é", "1", "x\n", "x".repeat(64), "x".repeat(254)],
  ...[0, -1, 1.5, 2 ** 31 - 1, 2 ** 31, 2 ** 53, true, [], {}, [null], [""], { a: null }, { "": "x" }, { "-": 1 }],
];

// An object's place is a matter of the request, and these belong to the server.
const LEFT = /^(?:apiVersion|kind|metadata|metadata\.(?:namespace|generateName|resourceVersion))$/;

/** Returns the objects that differ from one in one value, in a field that is missing or unknown, or in an item that is there twice. */
export function alteredObjects(object: object): AlteredObject[] {
  return alterationsOf(object, "").map(({ change, value }) => ({ change, object: value as object }));
}

interface Alteration {
  readonly change: string;
  readonly value: unknown;
}

function alterationsOf(value: unknown, path: string): Alteration[] {
  if (Array.isArray(value))
    return [
      ...(value.length === 0 ? [] : [{ change: `${path}[0] is there twice`, value: [...value, value[0]] }]),
      ...value.flatMap((item: unknown, index) =>
        [...replacements(`${path}[${index}]`), ...alterationsOf(item, `${path}[${index}]`)].map((each) => ({
          ...each,
          value: value.with(index, each.value),
        })),
      ),
    ];
  if (typeof value !== "object" || value === null) return [];
  const unknown = {
    change: `${path === "" ? "" : `${path}.`}noSuchField is there`,
    value: { ...value, noSuchField: 1 },
  };
  return [
    unknown,
    ...Object.entries(value).flatMap(([name, member]) => {
      const at = path === "" ? name : `${path}.${name}`;
      const below = alterationsOf(member, at);
      const here = LEFT.test(at) ? [] : replacements(at);
      const changed = [...here, ...below].map((each) => ({ ...each, value: { ...value, [name]: each.value } }));
      const { [name]: _, ...rest } = value as Json;
      return LEFT.test(at) ? changed : [...changed, { change: `${at} is missing`, value: rest }];
    }),
  ];
}

function replacements(path: string): Alteration[] {
  return VALUES.map((value) => ({ change: `${path} is ${JSON.stringify(value).slice(0, 30)}`, value }));
}
