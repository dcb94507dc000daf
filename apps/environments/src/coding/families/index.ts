import { gridSums, listSplits } from './divisions.ts';
import { digitCounts } from './digits.ts';
import { coins, textDistances } from './dynamic.ts';
import { expressions } from './expressions.ts';
import type { Family } from './family.ts';
import { tables, templates, wrappedText } from './formatting.ts';
import { gridWalks, linkedGroups } from './graphs.ts';
import { bookings, coveredNumbers } from './intervals.ts';
import { nearest, sublists } from './lists.ts';
import { caches, eventLogs, tinyMachines } from './machines.ts';
import { bitWords, matrixReadings } from './matrices.ts';
import { numberCounts } from './number-counts.ts';
import { numerals } from './numerals.ts';
import { buildOrders, trees } from './orders.ts';
import { pairs, rankings } from './pairs.ts';
import { folders, separatedValues, settings } from './parsing.ts';
import { groupedRecords, joinedTables } from './records.ts';
import { recurrences } from './recurrences.ts';
import { routes } from './routes.ts';
import { brackets, runLengths, textWindows, wordRules } from './strings.ts';

/** A change of the families or of their variants deals the tasks again: raise the version in catalogue.ts. */
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
