import { gridSums, coins, listSplits, textDistances } from './dynamic.ts';
import type { Family } from './family.ts';
import { tables, templates, wrappedText } from './formatting.ts';
import { gridWalks, linkedGroups, routes } from './graphs.ts';
import { bookings, coveredNumbers } from './intervals.ts';
import { nearest, pairs, rankings, sublists } from './lists.ts';
import { caches, eventLogs, tinyMachines } from './machines.ts';
import { bitWords, matrixReadings } from './matrices.ts';
import { digitCounts, numberCounts, numerals, recurrences } from './numbers.ts';
import { buildOrders, trees } from './orders.ts';
import { expressions, folders, separatedValues, settings } from './parsing.ts';
import { groupedRecords, joinedTables } from './records.ts';
import { brackets, runLengths, textWindows, wordRules } from './strings.ts';

/** A new family, or a new variant at the end of one, keeps the tasks of the others. */
export const families: Family[] = [
  runLengths,
  wordRules,
  textWindows,
  brackets,
  wrappedText,
  templates,
  tables,
  expressions,
  separatedValues,
  settings,
  folders,
  sublists,
  nearest,
  pairs,
  rankings,
  coveredNumbers,
  bookings,
  gridWalks,
  linkedGroups,
  routes,
  buildOrders,
  trees,
  coins,
  textDistances,
  listSplits,
  gridSums,
  numerals,
  numberCounts,
  digitCounts,
  recurrences,
  matrixReadings,
  bitWords,
  tinyMachines,
  eventLogs,
  caches,
  groupedRecords,
  joinedTables,
];
