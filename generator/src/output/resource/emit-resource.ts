import type { ResourceModel } from "../../model/project-model.js";
import { findDuplicates } from "./deduplicate.js";
import { inputViewOf } from "./input-view.js";
import { normaliseSchema } from "./normalise.js";
import { generatedFile, type OutputFile } from "../files/output-file.js";
import { printAlias, printImport } from "../print/declarations.js";
import { printSchema } from "../print/print-schema.js";
import { printClass, printInput, printValueImports, runtimeTypesOf, schemaNameOf } from "./print-class.js";
import { printShape } from "./print-types.js";
import { modulePathOf } from "./resource-name.js";
import { buildRuntimeSchema } from "./runtime-schema.js";
import { codegenModule } from "../runtime-symbols.js";
import type { ShapeModel } from "./shape-model.js";

/** Emits the class of a kind with its types, and beside it the schema that the runtime reads. */
export function emitResource(resource: ResourceModel): OutputFile[] {
  const path = `src/generated/${modulePathOf(resource)}`;
  const schema = normaliseSchema(resource);
  const input = inputViewOf(schema);
  const schemaName = schemaNameOf(schema.className);
  const runtimeSchema = buildRuntimeSchema(resource);
  const imports = [
    printValueImports(runtimeSchema),
    printImport(runtimeTypesOf(resource, [schema.root, ...schema.shapes, ...input.shapes]), codegenModule, true),
    printImport([schemaName], `./${path.slice(path.lastIndexOf("/") + 1)}.schema.js`),
  ];
  const declarations = [
    ...printShapes(schema.shapes),
    ...printShapes(input.shapes),
    printInput(resource, input.root),
    printClass(resource, schema.root),
  ];
  return [
    generatedFile(`${path}.ts`, [imports.join("\n"), ...declarations]),
    generatedFile(`${path}.schema.ts`, [
      printImport(["Schema"], codegenModule, true),
      ...printSchema(schemaName, runtimeSchema),
    ]),
  ];
}

/** Prints shapes as exported types; shapes that differ in their name alone become one. */
export function printShapes(shapes: readonly ShapeModel[]): string[] {
  const duplicates = findDuplicates(shapes);
  return shapes.map((shape) => {
    const first = duplicates.get(shape.name);
    return first === undefined ? printShape(shape) : printAlias(shape.name, first);
  });
}
