declare <16 x i16> @llvm.masked.load.v16i16.p0(ptr, i32, <16 x i1>, <16 x i16>)
declare void @llvm.masked.store.v16i16.p0(<16 x i16>, ptr, i32, <16 x i1>)

define void @fused_add_relu(ptr readonly %params, i64 %begin, i64 %end) nounwind {
entry:
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %start, label %exit
start:
  %t0 = getelementptr ptr, ptr %params, i64 0
  %p0 = load ptr, ptr %t0, align 8
  %t1 = getelementptr ptr, ptr %params, i64 1
  %p1 = load ptr, ptr %t1, align 8
  %t2 = getelementptr ptr, ptr %params, i64 2
  %p2 = load ptr, ptr %t2, align 8
  br label %row
row:
  %pos = phi i64 [ %begin, %start ], [ %pos.next, %done ]
  %row.index = udiv i64 %pos, 256
  %row.first = mul i64 %row.index, 256
  %lo = sub i64 %pos, %row.first
  %left = sub i64 %end, %row.first
  %partial = icmp slt i64 %left, 256
  %hi = select i1 %partial, i64 %left, i64 256
  %t3 = mul i64 %row.index, 256
  %t4 = getelementptr i16, ptr %p0, i64 %t3
  %t5 = mul i64 %row.index, 256
  %t6 = getelementptr i16, ptr %p2, i64 %t5
  %t7 = sub i64 %hi, %lo
  %t8 = and i64 %t7, -64
  %main.end = add i64 %lo, %t8
  %has.main = icmp slt i64 %lo, %main.end
  br i1 %has.main, label %main, label %rest
main:
  %i = phi i64 [ %lo, %row ], [ %i.next, %main ]
  %t9 = getelementptr i16, ptr %t4, i64 %i
  %t10 = load <16 x i16>, ptr %t9, align 2
  ; cast
  %t11 = zext <16 x i16> %t10 to <16 x i32>
  %t12 = shl <16 x i32> %t11, splat (i32 16)
  %t13 = bitcast <16 x i32> %t12 to <16 x float>
  %t14 = getelementptr i16, ptr %p1, i64 %i
  %t15 = load <16 x i16>, ptr %t14, align 2
  ; cast
  %t16 = zext <16 x i16> %t15 to <16 x i32>
  %t17 = shl <16 x i32> %t16, splat (i32 16)
  %t18 = bitcast <16 x i32> %t17 to <16 x float>
  ; add
  %t19 = fadd <16 x float> %t13, %t18
  ; maximum
  %t20.beyond = fcmp ugt <16 x float> %t19, splat (float 0x0000000000000000)
  %t20.extreme = select <16 x i1> %t20.beyond, <16 x float> %t19, <16 x float> splat (float 0x0000000000000000)
  %t20.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t20 = select <16 x i1> %t20.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t20.extreme
  ; cast
  %t21 = bitcast <16 x float> %t20 to <16 x i32>
  %t22 = lshr <16 x i32> %t21, splat (i32 16)
  %t23 = and <16 x i32> %t22, splat (i32 1)
  %t24 = add <16 x i32> %t23, splat (i32 32767)
  %t25 = add <16 x i32> %t21, %t24
  %t26 = lshr <16 x i32> %t25, splat (i32 16)
  %t27 = fcmp uno <16 x float> %t20, zeroinitializer
  %t28 = select <16 x i1> %t27, <16 x i32> splat (i32 32704), <16 x i32> %t26
  %t29 = trunc <16 x i32> %t28 to <16 x i16>
  %t30 = getelementptr i16, ptr %t6, i64 %i
  store <16 x i16> %t29, ptr %t30, align 2
  %t31 = add i64 %i, 16
  %t32 = getelementptr i16, ptr %t4, i64 %t31
  %t33 = load <16 x i16>, ptr %t32, align 2
  ; cast
  %t34 = zext <16 x i16> %t33 to <16 x i32>
  %t35 = shl <16 x i32> %t34, splat (i32 16)
  %t36 = bitcast <16 x i32> %t35 to <16 x float>
  %t37 = getelementptr i16, ptr %p1, i64 %t31
  %t38 = load <16 x i16>, ptr %t37, align 2
  ; cast
  %t39 = zext <16 x i16> %t38 to <16 x i32>
  %t40 = shl <16 x i32> %t39, splat (i32 16)
  %t41 = bitcast <16 x i32> %t40 to <16 x float>
  ; add
  %t42 = fadd <16 x float> %t36, %t41
  ; maximum
  %t43.beyond = fcmp ugt <16 x float> %t42, splat (float 0x0000000000000000)
  %t43.extreme = select <16 x i1> %t43.beyond, <16 x float> %t42, <16 x float> splat (float 0x0000000000000000)
  %t43.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t43 = select <16 x i1> %t43.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t43.extreme
  ; cast
  %t44 = bitcast <16 x float> %t43 to <16 x i32>
  %t45 = lshr <16 x i32> %t44, splat (i32 16)
  %t46 = and <16 x i32> %t45, splat (i32 1)
  %t47 = add <16 x i32> %t46, splat (i32 32767)
  %t48 = add <16 x i32> %t44, %t47
  %t49 = lshr <16 x i32> %t48, splat (i32 16)
  %t50 = fcmp uno <16 x float> %t43, zeroinitializer
  %t51 = select <16 x i1> %t50, <16 x i32> splat (i32 32704), <16 x i32> %t49
  %t52 = trunc <16 x i32> %t51 to <16 x i16>
  %t53 = getelementptr i16, ptr %t6, i64 %t31
  store <16 x i16> %t52, ptr %t53, align 2
  %t54 = add i64 %i, 32
  %t55 = getelementptr i16, ptr %t4, i64 %t54
  %t56 = load <16 x i16>, ptr %t55, align 2
  ; cast
  %t57 = zext <16 x i16> %t56 to <16 x i32>
  %t58 = shl <16 x i32> %t57, splat (i32 16)
  %t59 = bitcast <16 x i32> %t58 to <16 x float>
  %t60 = getelementptr i16, ptr %p1, i64 %t54
  %t61 = load <16 x i16>, ptr %t60, align 2
  ; cast
  %t62 = zext <16 x i16> %t61 to <16 x i32>
  %t63 = shl <16 x i32> %t62, splat (i32 16)
  %t64 = bitcast <16 x i32> %t63 to <16 x float>
  ; add
  %t65 = fadd <16 x float> %t59, %t64
  ; maximum
  %t66.beyond = fcmp ugt <16 x float> %t65, splat (float 0x0000000000000000)
  %t66.extreme = select <16 x i1> %t66.beyond, <16 x float> %t65, <16 x float> splat (float 0x0000000000000000)
  %t66.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t66 = select <16 x i1> %t66.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t66.extreme
  ; cast
  %t67 = bitcast <16 x float> %t66 to <16 x i32>
  %t68 = lshr <16 x i32> %t67, splat (i32 16)
  %t69 = and <16 x i32> %t68, splat (i32 1)
  %t70 = add <16 x i32> %t69, splat (i32 32767)
  %t71 = add <16 x i32> %t67, %t70
  %t72 = lshr <16 x i32> %t71, splat (i32 16)
  %t73 = fcmp uno <16 x float> %t66, zeroinitializer
  %t74 = select <16 x i1> %t73, <16 x i32> splat (i32 32704), <16 x i32> %t72
  %t75 = trunc <16 x i32> %t74 to <16 x i16>
  %t76 = getelementptr i16, ptr %t6, i64 %t54
  store <16 x i16> %t75, ptr %t76, align 2
  %t77 = add i64 %i, 48
  %t78 = getelementptr i16, ptr %t4, i64 %t77
  %t79 = load <16 x i16>, ptr %t78, align 2
  ; cast
  %t80 = zext <16 x i16> %t79 to <16 x i32>
  %t81 = shl <16 x i32> %t80, splat (i32 16)
  %t82 = bitcast <16 x i32> %t81 to <16 x float>
  %t83 = getelementptr i16, ptr %p1, i64 %t77
  %t84 = load <16 x i16>, ptr %t83, align 2
  ; cast
  %t85 = zext <16 x i16> %t84 to <16 x i32>
  %t86 = shl <16 x i32> %t85, splat (i32 16)
  %t87 = bitcast <16 x i32> %t86 to <16 x float>
  ; add
  %t88 = fadd <16 x float> %t82, %t87
  ; maximum
  %t89.beyond = fcmp ugt <16 x float> %t88, splat (float 0x0000000000000000)
  %t89.extreme = select <16 x i1> %t89.beyond, <16 x float> %t88, <16 x float> splat (float 0x0000000000000000)
  %t89.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t89 = select <16 x i1> %t89.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t89.extreme
  ; cast
  %t90 = bitcast <16 x float> %t89 to <16 x i32>
  %t91 = lshr <16 x i32> %t90, splat (i32 16)
  %t92 = and <16 x i32> %t91, splat (i32 1)
  %t93 = add <16 x i32> %t92, splat (i32 32767)
  %t94 = add <16 x i32> %t90, %t93
  %t95 = lshr <16 x i32> %t94, splat (i32 16)
  %t96 = fcmp uno <16 x float> %t89, zeroinitializer
  %t97 = select <16 x i1> %t96, <16 x i32> splat (i32 32704), <16 x i32> %t95
  %t98 = trunc <16 x i32> %t97 to <16 x i16>
  %t99 = getelementptr i16, ptr %t6, i64 %t77
  store <16 x i16> %t98, ptr %t99, align 2
  %i.next = add i64 %i, 64
  %more.main = icmp slt i64 %i.next, %main.end
  br i1 %more.main, label %main, label %rest
rest:
  %has.tail = icmp slt i64 %main.end, %hi
  br i1 %has.tail, label %tail, label %done
tail:
  %j = phi i64 [ %main.end, %rest ], [ %j.next, %tail ]
  %t100 = sub i64 %hi, %j
  %t101 = icmp slt i64 %t100, 16
  %t102 = select i1 %t101, i64 %t100, i64 16
  %t103 = trunc i64 %t102 to i32
  %t104 = insertelement <16 x i32> poison, i32 %t103, i64 0
  %t105 = shufflevector <16 x i32> %t104, <16 x i32> poison, <16 x i32> zeroinitializer
  %t106 = icmp ult <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %t105
  %t107 = getelementptr i16, ptr %t4, i64 %j
  %t108 = call <16 x i16> @llvm.masked.load.v16i16.p0(ptr %t107, i32 2, <16 x i1> %t106, <16 x i16> splat (i16 16256))
  ; cast
  %t109 = zext <16 x i16> %t108 to <16 x i32>
  %t110 = shl <16 x i32> %t109, splat (i32 16)
  %t111 = bitcast <16 x i32> %t110 to <16 x float>
  %t112 = getelementptr i16, ptr %p1, i64 %j
  %t113 = call <16 x i16> @llvm.masked.load.v16i16.p0(ptr %t112, i32 2, <16 x i1> %t106, <16 x i16> splat (i16 16256))
  ; cast
  %t114 = zext <16 x i16> %t113 to <16 x i32>
  %t115 = shl <16 x i32> %t114, splat (i32 16)
  %t116 = bitcast <16 x i32> %t115 to <16 x float>
  ; add
  %t117 = fadd <16 x float> %t111, %t116
  ; maximum
  %t118.beyond = fcmp ugt <16 x float> %t117, splat (float 0x0000000000000000)
  %t118.extreme = select <16 x i1> %t118.beyond, <16 x float> %t117, <16 x float> splat (float 0x0000000000000000)
  %t118.nan = fcmp uno <16 x float> splat (float 0x0000000000000000), splat (float 0x0000000000000000)
  %t118 = select <16 x i1> %t118.nan, <16 x float> splat (float 0x0000000000000000), <16 x float> %t118.extreme
  ; cast
  %t119 = bitcast <16 x float> %t118 to <16 x i32>
  %t120 = lshr <16 x i32> %t119, splat (i32 16)
  %t121 = and <16 x i32> %t120, splat (i32 1)
  %t122 = add <16 x i32> %t121, splat (i32 32767)
  %t123 = add <16 x i32> %t119, %t122
  %t124 = lshr <16 x i32> %t123, splat (i32 16)
  %t125 = fcmp uno <16 x float> %t118, zeroinitializer
  %t126 = select <16 x i1> %t125, <16 x i32> splat (i32 32704), <16 x i32> %t124
  %t127 = trunc <16 x i32> %t126 to <16 x i16>
  %t128 = getelementptr i16, ptr %t6, i64 %j
  call void @llvm.masked.store.v16i16.p0(<16 x i16> %t127, ptr %t128, i32 2, <16 x i1> %t106)
  %j.next = add i64 %j, 16
  %more.tail = icmp slt i64 %j.next, %hi
  br i1 %more.tail, label %tail, label %done
done:
  %pos.next = add i64 %row.first, %hi
  %more.rows = icmp slt i64 %pos.next, %end
  br i1 %more.rows, label %row, label %exit
exit:
  ret void
}
