/* SPDX-License-Identifier: MIT */
/* The accumulators of a wgmma (wgmma.cuh) as operands of inline assembly, N / 2 registers a thread: their names in the instruction, and
 * the constraints for c[0][0] to c[N / 8 - 1][3]. An asm statement needs both spelled out in its text. */
#ifndef SDLF_CALCULATORS_CUDA_WGMMA_SUMS_CUH
#define SDLF_CALCULATORS_CUDA_WGMMA_SUMS_CUH

#define WGMMA_NAMES_32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define WGMMA_NAMES_64                                                                                                 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                                           \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define WGMMA_NAMES_112                                                                                                \
    WGMMA_NAMES_64                                                                                                     \
    ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"                                                \
    "%48,%49,%50,%51,%52,%53,%54,%55"
#define WGMMA_NAMES_128 WGMMA_NAMES_112 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define WGMMA_NAMES_200                                                                                                \
    WGMMA_NAMES_128                                                                                                    \
    ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"                                                \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"                                                 \
    "%96,%97,%98,%99"
#define WGMMA_NAMES_208 WGMMA_NAMES_200 ",%100,%101,%102,%103"
#define WGMMA_NAMES_216 WGMMA_NAMES_208 ",%104,%105,%106,%107"
#define WGMMA_NAMES_224 WGMMA_NAMES_216 ",%108,%109,%110,%111"
#define WGMMA_NAMES_256                                                                                                \
    WGMMA_NAMES_224                                                                                                    \
    ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

#define WGMMA_TILE(c, i)    "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define WGMMA_TILES_2(c, i) WGMMA_TILE(c, i), WGMMA_TILE(c, (i) + 1)
#define WGMMA_TILES_4(c, i) WGMMA_TILES_2(c, i), WGMMA_TILES_2(c, (i) + 2)
#define WGMMA_TILES_8(c, i) WGMMA_TILES_4(c, i), WGMMA_TILES_4(c, (i) + 4)

#define WGMMA_SUMS_32(c)  WGMMA_TILES_4(c, 0)
#define WGMMA_SUMS_64(c)  WGMMA_TILES_8(c, 0)
#define WGMMA_SUMS_112(c) WGMMA_SUMS_64(c), WGMMA_TILES_4(c, 8), WGMMA_TILES_2(c, 12)
#define WGMMA_SUMS_128(c) WGMMA_SUMS_64(c), WGMMA_TILES_8(c, 8)
#define WGMMA_SUMS_200(c) WGMMA_SUMS_128(c), WGMMA_TILES_8(c, 16), WGMMA_TILE(c, 24)
#define WGMMA_SUMS_208(c) WGMMA_SUMS_200(c), WGMMA_TILE(c, 25)
#define WGMMA_SUMS_216(c) WGMMA_SUMS_208(c), WGMMA_TILE(c, 26)
#define WGMMA_SUMS_224(c) WGMMA_SUMS_216(c), WGMMA_TILE(c, 27)
#define WGMMA_SUMS_256(c) WGMMA_SUMS_224(c), WGMMA_TILES_4(c, 28)

#endif
