import type { EventSourceModel, FilterName, InformerModel } from "../../model/project-model.js";
import { sourceNamesOf } from "../controller-names.js";
import { needsFunctions } from "../controller/emit-event-sources.js";
import { filteredOf } from "../controller/filtered.js";
import type { NamedController, Stub } from "./stub.js";
import { renderTemplate } from "../project/template.js";

/** Returns the file with the functions that filter, if the spec names any. */
export async function filtersStub({ controller, names }: NamedController): Promise<Stub[]> {
  const used = new Map<string, { types: Set<string>; docs: string[] }>();
  for (const { path, filters, types } of filteredOf(controller, names))
    for (const [key, filter] of Object.entries(filters)) {
      if (filter.kind !== "function") continue;
      const use = used.get(filter.name) ?? { types: new Set(), docs: [] };
      use.types.add(types[key as FilterName]);
      use.docs.push(`Decides ${key} of ${path}: whether the change is reconciled.`);
      used.set(filter.name, use);
    }
  if (used.size === 0) return [];
  const imports = new Set([...used.values()].flatMap(({ types }) => [...types]));
  const file = `src/${names.folder}/filters.ts`;
  const texts = await Promise.all(
    [...used].map(([filter, { types, docs }]) =>
      // One function in several places has to do for each of them.
      renderTemplate("stubs/filter.ts", { filter, Filter: [...types].join(" & "), doc: docs.join(" "), file }),
    ),
  );
  const head = `import type { ${[...imports].sort().join(", ")} } from "../generated/${names.folder}/types.js";`;
  return [{ path: file, render: async () => [head, ...texts].join("\n\n") }];
}

/** Returns the file with the functions that index primaries, if the spec names any. */
export async function indexesStub({ controller, names }: NamedController): Promise<Stub[]> {
  if (controller.indexes === undefined) return [];
  const used = new Set(Object.values(controller.indexes).map(({ name }) => name));
  const doc = `Returns the values under which a ${names.primary} is found. Use no input but the ${names.primary}.`;
  const file = `src/${names.folder}/indexes.ts`;
  const texts = await Promise.all(
    [...used].map((own) =>
      renderTemplate("stubs/event-sources/mapper.ts", { function: own, Type: names.index, doc, file }),
    ),
  );
  const head = `import type { ${names.index} } from "../generated/${names.folder}/types.js";`;
  return [{ path: file, render: async () => [head, ...texts].join("\n\n") }];
}

/** Returns a file for each event source that needs functions of the user's. */
export function eventSourceStubs({ controller, names }: NamedController): Stub[] {
  return controller.eventSources.filter(needsFunctions).map((source) => ({
    path: `src/${names.folder}/event-sources/${sourceNamesOf(source).file}.ts`,
    render: () => renderSource(source, { names }),
  }));
}

async function renderSource(source: EventSourceModel, { names }: Pick<NamedController, "names">): Promise<string> {
  const { name, ...types } = sourceNamesOf(source);
  if (source.kind === "informer") return renderFunctions(source, names.folder);
  return renderTemplate(`stubs/event-sources/${source.kind}.ts`, {
    name,
    Primary: names.primary,
    Source: types.functions,
    controller: names.folder,
    source: types.source,
  });
}

async function renderFunctions({ name, resource, mapping, primaryToSecondary }: InformerModel, folder: string) {
  const types = sourceNamesOf({ name });
  const file = `src/${folder}/event-sources/${types.file}.ts`;
  const functions = [
    ...(mapping.kind === "function"
      ? [
          {
            function: mapping.name,
            Type: types.mapper,
            doc: `Returns the keys (namespace/name) of the primaries that a ${resource.kind} concerns. Use no input but the ${resource.kind} and \`primaries\`.`,
          },
        ]
      : []),
    ...(primaryToSecondary === undefined
      ? []
      : [
          {
            function: primaryToSecondary.name,
            Type: types.primaryMapper,
            doc: `Returns the keys (namespace/name) of each ${resource.kind} that this primary names, whether or not it exists. Use no input but the primary and \`secondary\`.`,
          },
        ]),
  ];
  const texts = await Promise.all(
    functions.map((replacements) => renderTemplate("stubs/event-sources/mapper.ts", { ...replacements, file })),
  );
  const imports = functions.map(({ Type }) => Type).sort();
  const head = `import type { ${imports.join(", ")} } from "../../generated/${folder}/types.js";`;
  return [head, ...texts].join("\n\n");
}
