-- The tables of a ledger: entries never change, and nothing is ever refunded.
CREATE TABLE budget (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    total INTEGER NOT NULL CHECK (typeof(total) = 'integer'),
    spent INTEGER NOT NULL CHECK (typeof(spent) = 'integer' AND spent >= 0),
    terms INTEGER NOT NULL,
    CHECK (spent <= total)
);
CREATE TABLE allotment (
    analyst TEXT PRIMARY KEY,
    total INTEGER NOT NULL CHECK (typeof(total) = 'integer'),
    spent INTEGER NOT NULL CHECK (typeof(spent) = 'integer' AND spent >= 0),
    CHECK (spent <= total)
);
CREATE TABLE log (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL
        CHECK (kind IN ('open', 'amend', 'allot', 'raise', 'charge', 'answer')),
    request TEXT,
    cost INTEGER NOT NULL CHECK (typeof(cost) = 'integer' AND cost >= 0),
    content TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32)
);
CREATE UNIQUE INDEX one_charge ON log (request) WHERE kind = 'charge';
CREATE UNIQUE INDEX one_answer ON log (request) WHERE kind = 'answer';
CREATE TABLE answer (
    entry INTEGER NOT NULL REFERENCES log (number),
    part INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (entry, part, piece)
);
CREATE TRIGGER log_is_fixed BEFORE UPDATE ON log
BEGIN SELECT RAISE (ABORT, 'entries never change'); END;
CREATE TRIGGER log_is_kept BEFORE DELETE ON log
BEGIN SELECT RAISE (ABORT, 'entries are never deleted'); END;
CREATE TRIGGER answer_is_fixed BEFORE UPDATE ON answer
BEGIN SELECT RAISE (ABORT, 'answers never change'); END;
CREATE TRIGGER answer_is_kept BEFORE DELETE ON answer
BEGIN SELECT RAISE (ABORT, 'answers are never deleted'); END;
CREATE TRIGGER budget_is_kept BEFORE DELETE ON budget
BEGIN SELECT RAISE (ABORT, 'the budget is never deleted'); END;
CREATE TRIGGER nothing_is_refunded BEFORE UPDATE ON budget WHEN NEW.spent < OLD.spent
BEGIN SELECT RAISE (ABORT, 'nothing is ever refunded'); END;
CREATE TRIGGER allotments_are_kept BEFORE DELETE ON allotment
BEGIN SELECT RAISE (ABORT, 'allotments are never deleted'); END;
CREATE TRIGGER no_allotment_is_refunded BEFORE UPDATE ON allotment
WHEN NEW.spent < OLD.spent OR NEW.analyst <> OLD.analyst
BEGIN SELECT RAISE (ABORT, 'nothing is ever refunded'); END;
CREATE TRIGGER budgets_are_not_lowered BEFORE UPDATE ON budget
WHEN NEW.total < OLD.total AND EXISTS (SELECT 1 FROM log WHERE kind = 'charge')
BEGIN SELECT RAISE (ABORT, 'a budget that was charged is never lowered'); END;
CREATE TRIGGER changes_of_terms_are_logged BEFORE UPDATE ON budget
WHEN NEW.terms <> OLD.terms AND EXISTS (SELECT 1 FROM log WHERE kind = 'charge')
AND NOT (
    NEW.total = OLD.total AND NEW.spent = OLD.spent
    AND EXISTS (
        SELECT 1 FROM log WHERE number = NEW.terms AND kind = 'amend'
        AND number = (SELECT max(number) FROM log)
        AND json_extract(content, '$.released') IS NOT NULL
    )
)
BEGIN SELECT RAISE (ABORT, 'after the first charge columns are added, and no more'); END;
CREATE TRIGGER raises_are_logged BEFORE UPDATE ON budget
WHEN NEW.total > OLD.total AND EXISTS (SELECT 1 FROM log WHERE kind = 'charge')
AND (SELECT kind FROM log ORDER BY number DESC LIMIT 1) <> 'raise'
BEGIN SELECT RAISE (ABORT, 'a budget is raised with a record'); END;
CREATE TABLE in_use (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    mark INTEGER NOT NULL
);
INSERT INTO in_use VALUES (1, 0);
