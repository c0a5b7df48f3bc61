declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)

define void @fused_row(ptr readonly %params, i64 %begin, i64 %end) nounwind {
entry:
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %start, label %exit
start:
  %t0 = getelementptr ptr, ptr %params, i64 0
  %p0 = load ptr, ptr %t0, align 8
  %t1 = getelementptr ptr, ptr %params, i64 1
  %p1 = load ptr, ptr %t1, align 8
  br label %rows
rows:
  %t2 = phi i64 [ %begin, %start ], [ %t53, %block.done ]
  %t3 = sub i64 1000, %t2
  %t4 = sub i64 %end, %t2
  %t5 = icmp slt i64 %t3, %t4
  %t6 = select i1 %t5, i64 %t3, i64 %t4
  %t7 = icmp sge i64 %t6, 32
  br i1 %t7, label %block, label %block.else
block:
  %t8 = add i64 %t2, 8
  %t9 = add i64 %t2, 16
  %t10 = add i64 %t2, 24
  br label %block.pass0
block.pass0:
  %t11 = phi i64 [ 0, %block ], [ %t30, %block.pass0 ]
  %t12 = phi <8 x float> [ splat (float 0x0000000000000000), %block ], [ %t20, %block.pass0 ]
  %t13 = phi <8 x float> [ splat (float 0x0000000000000000), %block ], [ %t23, %block.pass0 ]
  %t14 = phi <8 x float> [ splat (float 0x0000000000000000), %block ], [ %t26, %block.pass0 ]
  %t15 = phi <8 x float> [ splat (float 0x0000000000000000), %block ], [ %t29, %block.pass0 ]
  %t16 = mul i64 %t11, 1000
  %t17 = getelementptr float, ptr %p0, i64 %t16
  %t18 = getelementptr float, ptr %t17, i64 %t2
  %t19 = load <8 x float>, ptr %t18, align 4
  %t20 = fadd <8 x float> %t12, %t19
  %t21 = getelementptr float, ptr %t17, i64 %t8
  %t22 = load <8 x float>, ptr %t21, align 4
  %t23 = fadd <8 x float> %t13, %t22
  %t24 = getelementptr float, ptr %t17, i64 %t9
  %t25 = load <8 x float>, ptr %t24, align 4
  %t26 = fadd <8 x float> %t14, %t25
  %t27 = getelementptr float, ptr %t17, i64 %t10
  %t28 = load <8 x float>, ptr %t27, align 4
  %t29 = fadd <8 x float> %t15, %t28
  %t30 = add i64 %t11, 1
  %t31 = icmp slt i64 %t30, 50
  br i1 %t31, label %block.pass0, label %block.pass0.done
block.pass0.done:
  %t32 = getelementptr float, ptr %p1, i64 %t2
  store <8 x float> %t20, ptr %t32, align 4
  %t33 = getelementptr float, ptr %p1, i64 %t8
  store <8 x float> %t23, ptr %t33, align 4
  %t34 = getelementptr float, ptr %p1, i64 %t9
  store <8 x float> %t26, ptr %t34, align 4
  %t35 = getelementptr float, ptr %p1, i64 %t10
  store <8 x float> %t29, ptr %t35, align 4
  br label %block.done
block.else:
  %t36 = icmp sgt i64 %t6, 8
  %t37 = select i1 %t36, i64 8, i64 %t6
  %t38 = trunc i64 %t37 to i32
  %t39 = insertelement <8 x i32> poison, i32 %t38, i64 0
  %t40 = shufflevector <8 x i32> %t39, <8 x i32> poison, <8 x i32> zeroinitializer
  %t41 = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t40
  br label %part.pass0
part.pass0:
  %t42 = phi i64 [ 0, %block.else ], [ %t49, %part.pass0 ]
  %t43 = phi <8 x float> [ splat (float 0x0000000000000000), %block.else ], [ %t48, %part.pass0 ]
  %t44 = mul i64 %t42, 1000
  %t45 = getelementptr float, ptr %p0, i64 %t44
  %t46 = getelementptr float, ptr %t45, i64 %t2
  %t47 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %t46, i32 4, <8 x i1> %t41, <8 x float> splat (float 1.0))
  %t48 = fadd <8 x float> %t43, %t47
  %t49 = add i64 %t42, 1
  %t50 = icmp slt i64 %t49, 50
  br i1 %t50, label %part.pass0, label %part.pass0.done
part.pass0.done:
  %t51 = getelementptr float, ptr %p1, i64 %t2
  call void @llvm.masked.store.v8f32.p0(<8 x float> %t48, ptr %t51, i32 4, <8 x i1> %t41)
  br label %block.done
block.done:
  %t52 = phi i64 [ 32, %block.pass0.done ], [ %t37, %part.pass0.done ]
  %t53 = add i64 %t2, %t52
  %t54 = icmp slt i64 %t53, %end
  br i1 %t54, label %rows, label %rows.done
rows.done:
  br label %exit
exit:
  ret void
}
