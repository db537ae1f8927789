# What a person types. `make help` lists it.

CARGO ?= cargo
PREFIX ?= $(HOME)/.local
BOTTLEWORKS = $(or $(CARGO_TARGET_DIR),target)/debug/bottleworks

# Every part that the suites without a container engine use.
PARTS = REQUIRE_BWRAP=1 REQUIRE_FAKETIME=1 REQUIRE_GIT=1 REQUIRE_OPENSSL=1 REQUIRE_PERL=1 REQUIRE_TMUX=1 REQUIRE_GPG=1 REQUIRE_SSH_KEYGEN=1

.PHONY: help demo test test-aos test-real test-live chaos obedient soak check fmt lint doc deps words advisories fuzz bench bench-delta bench-train bench-merge bench-verdict install dist test-dist book record

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

demo: ## Show the main job of each command in a sealed box, with no model and no set-up (KEEP=1 keeps the folders)
	@scripts/packages demo
	@$(CARGO) build --quiet --package bottleworks
	@for name in forklift wf bot-bottle; do \
		printf '\n== %s demo\n' "$$name"; \
		$(BOTTLEWORKS) "$$name" demo $(if $(KEEP),--keep) || exit; \
	done

test: ## Run the tests; parts that are missing are reported by name
	@scripts/packages test
	$(PARTS) scripts/suites
	$(CARGO) test --workspace --features bot-bottle/otlp --doc --quiet

test-aos: ## Run the tests of wf and of the formats it stands on (section 11 of its specification)
	@scripts/packages test
	$(PARTS) scripts/suites -E 'package(bottleworks-wf) + (package(bottleworks-model) & test(env_file))'

test-real: ## Run the suites with real parts: a container engine of our own, and every part required
	@scripts/packages real
	scripts/test-real

test-live: ## Run the suites that talk to a live Gitea: the one that BOTTLEWORKS_TEST_GITEA_URL names, else one of our own, built from its Go module
	@scripts/packages test
	scripts/test-live

chaos: ## Kill, lose, double and break what `bot-bottle serve` stands on, for long (ROUNDS=200, SERIES=50 of 14 kills), kill forklift while it pushes (PUSH_ROUNDS=10) and while a train is on its way (TRAIN_KILLS=200), and kill wf at every change of a folder; prints rounds, faults and losses
	@scripts/packages test
	$(PARTS) PUSH_ROUNDS=$(or $(PUSH_ROUNDS),10) $(CARGO) test --package forklift --test it -- push_chaos:: --nocapture
	$(PARTS) TRAIN_KILLS=$(or $(TRAIN_KILLS),200) $(CARGO) test --package forklift --test it -- train_kill:: --nocapture
	$(PARTS) KILL_POINTS=all $(CARGO) test --package bottleworks-wf --test it -- kill_chaos:: --nocapture
	$(PARTS) CHAOS_ROUNDS=$(or $(ROUNDS),200) KILL_SERIES=$(or $(SERIES),50) $(CARGO) test --package bot-bottle --test it -- chaos:: feedback:: plan_first:: --nocapture

obedient: ## Run an agent that obeys every text, with instructions planted everywhere; prints a row for each: what leaked, was written elsewhere, ran, or is not on record
	@scripts/packages test
	$(PARTS) OBEDIENT=1 $(CARGO) test --package bot-bottle --test it -- obedient:: --nocapture

soak: ## Run every suite ROUNDS times (10) beside LOAD busy loops (8); prints the failures by name
	@scripts/packages test
	$(PARTS) ROUNDS="$(ROUNDS)" LOAD="$(LOAD)" scripts/soak

check: fmt lint doc deps words ## Format, lints, documentation, dependencies and spelling, with warnings denied

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

deps:
	@scripts/packages check
	PATH="$$(scripts/tools check):$$PATH" && $(CARGO) deny --log-level error check --hide-inclusion-graph bans licenses sources && $(CARGO) shear

words:
	"$$(scripts/tools check)/typos"

advisories: ## Check the dependencies against the RustSec database, where it can be fetched
	scripts/advisories

fuzz: ## Run every fuzz target for DURATION seconds (60), or one of them (TARGET=plan), and keep the corpora
	@scripts/packages check
	DURATION="$(DURATION)" TARGET="$(TARGET)" PROFILE="$(PROFILE)" scripts/fuzz

bench: ## Measure what is promised, beside its yardstick, and print ratios
	@scripts/packages bench
	scripts/bench

bench-merge: ## Replay the merges of public forks (CLONES=folder LIST=file) and print how many conflicts are resolved, and how often as people did
	CLONES="$(CLONES)" LIST="$(LIST)" ARGS="$(ARGS)" scripts/bench-merge

bench-delta: ## Take the inventory of public forks (CLONES=folder LIST=file): the share of their own lines that has a commit, what upstream took, and the time
	CLONES="$(CLONES)" LIST="$(LIST)" ARGS="$(ARGS)" scripts/bench-delta

bench-train: ## Search made forks (TRAIN_FORKS=30) in C, Python, Rust and Go for the one of 300 commits that breaks them; BOX_RUSTC names the compiler as the box has it
	$(PARTS) TRAIN_FORKS=$(or $(TRAIN_FORKS),30) BOX_RUSTC="$(BOX_RUSTC)" $(CARGO) test --package forklift --test it -- train_break::a_break_planted --nocapture

bench-verdict: ## Judge honest merges of public forks (CLONES=folder LIST=file) or of generated ones, and dishonest variants of them
	CLONES="$(CLONES)" LIST="$(LIST)" ARGS="$(ARGS)" scripts/bench-verdict

book: ## Build the book of docs/ in target/book; needs the network once, for mdbook
	"$$(scripts/tools book)/mdbook" build docs
	git archive HEAD -- . ":!docs" | tar -x -C target/book
	@echo target/book/docs/index.html

record: ## Renew what docs/ record and generate: outputs of commands, and the reference
	scripts/record

install: ## Install forklift, wf and bot-bottle, manual pages and completions below PREFIX (~/.local)
	@scripts/packages demo
	$(CARGO) build --locked --profile local --package bottleworks
	install -D -m 755 $(or $(CARGO_TARGET_DIR),target)/local/bottleworks $(PREFIX)/bin/bottleworks
	for name in forklift wf bot-bottle; do ln -sfn bottleworks $(PREFIX)/bin/$$name; done
	$(PREFIX)/bin/bottleworks share $(PREFIX)/share

dist: ## Make what a release has, in target/dist: static programs, tarballs, .deb, image, SBOM, checksums, signature (SIGN_KEY=file)
	@scripts/packages dist
	SIGN_KEY="$(SIGN_KEY)" TARGETS="$(TARGETS)" scripts/dist

test-dist: ## Install what `make dist` made in bare Debian roots and run the demos there (as root)
	@scripts/packages dist
	scripts/test-dist
