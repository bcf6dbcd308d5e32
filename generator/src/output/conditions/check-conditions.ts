import type {
  ControllerModel,
  DependentModel,
  Diagnostic,
  ExpressionModel,
  FilterName,
  ProjectModel,
  SourcePosition,
} from "../../model/project-model.js";
import { controllerNamesOf, dependentNamesOf, type ControllerNames } from "../controller-names.js";
import { filteredOf, parametersOfFilter } from "../controller/filtered.js";
import type { OutputFile } from "../files/output-file.js";
import { nameResources } from "../resource/resource-name.js";

/** An expression of a spec inside the file that is compiled to check it. */
interface Probe {
  readonly expression: ExpressionModel;
  readonly path: string;
  readonly start: number;
}

interface ProbeFile {
  readonly path: string;
  readonly content: string;
  readonly probes: readonly Probe[];
}

/**
 * Type-checks the expressions of all conditions and filters with the emitted types, in memory.
 *
 * `locate` tells where a character of an expression is in its spec.
 */
export async function checkConditions(
  model: ProjectModel,
  files: readonly OutputFile[],
  locate: (expression: ExpressionModel, offset: number) => SourcePosition | undefined,
): Promise<Diagnostic[]> {
  const names = nameResources(model.resources);
  const probeFiles = model.controllers
    .map((controller) => probeFileOf(controller, controllerNamesOf(controller, names, model.controllers)))
    .filter(({ probes }) => probes.length > 0);
  if (probeFiles.length === 0) return [];
  const { createConditionProgram } = await import("./condition-program.js");
  const program = createConditionProgram([...files, ...probeFiles]);
  return probeFiles.flatMap((file) =>
    file.probes.flatMap((probe) => {
      const length = probe.expression.expression.length;
      const problems = program.problemsIn(file.path, { start: probe.start, end: probe.start + length });
      return problems.map(({ message, start }): Diagnostic => {
        const offset = Math.min(Math.max(start - probe.start, 0), length);
        const position = locate(probe.expression, offset) ?? probe.expression.position;
        return { severity: "error", rule: "when-type", message, position, path: probe.path };
      });
    }),
  );
}

// The names that the expression may use are parameters, typed as the runtime hands them over.
function probeFileOf(controller: ControllerModel, names: ControllerNames): ProbeFile {
  const probes: Probe[] = [];
  let content = 'import type * as types from "./types.js";\n';
  const add = (expression: ExpressionModel, { parameters, path }: { parameters: string; path: string }) => {
    content += `export const probe${probes.length} = ${parameters} => (\n`;
    probes.push({ expression, path, start: content.length });
    content += `${expression.expression}\n);\n`;
  };
  for (const dependent of controller.dependents)
    for (const [name, condition] of Object.entries(dependent.conditions))
      if (condition.kind === "when")
        add(condition, {
          parameters: parametersOf(dependent, condition),
          path: `spec.dependents.${dependent.name}.${name}.when`,
        });
  for (const { path, filters, objectType } of filteredOf(controller, names))
    for (const [name, filter] of Object.entries(filters))
      if (filter.kind === "when")
        add(filter, {
          parameters: parametersOfFilter(name as FilterName, filter.names, `types.${objectType}`),
          path: `spec.${path}.filters.${name}.when`,
        });
  return { path: `src/generated/${names.folder}/conditions.probe.ts`, content, probes };
}

function parametersOf(dependent: DependentModel, { names }: ExpressionModel): string {
  if (names.length === 0) return "()";
  return `({ ${names.join(", ")} }: types.${dependentNamesOf(dependent).conditionArguments})`;
}
